#include "bpf/entry_registers.hpp"

#if PYINJECT_BPF

#include "bpf/libbpf_messages.hpp"
#include "entry_registers.skel.h"
#include "procfs/namespaces.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <cerrno>
#include <cstddef>
#include <memory>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

namespace pyinject::bpf {

namespace {

struct DestroySkeleton {
  void operator()(entry_registers_bpf* skeleton) const { entry_registers_bpf__destroy(skeleton); }
};
struct DestroyLink {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};

// False: at the end, or on a failure.
bool read_record(int iterator, entry_registers& record) {
  std::size_t done = 0;
  while (done < sizeof record) {
    const auto got =
        ::read(iterator, reinterpret_cast<std::byte*>(&record) + done, sizeof record - done);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    done += static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

EntryRegisters read_entry_registers(base::Pid pid) {
  keep_libbpf_messages();
  const std::unique_ptr<entry_registers_bpf, DestroySkeleton> skeleton{entry_registers_bpf__open()};
  const auto own_namespace = procfs::own_namespace_number(procfs::Namespace::kPid);
  if (!skeleton || !own_namespace) {
    return {};
  }
  skeleton->rodata->own_pid_namespace = static_cast<std::uint32_t>(*own_namespace);
  skeleton->rodata->wanted_pid = static_cast<std::uint32_t>(pid.value());
  if (entry_registers_bpf__load(skeleton.get()) != 0) {
    return {};
  }
  const std::unique_ptr<bpf_link, DestroyLink> link{
      bpf_program__attach_iter(skeleton->progs.each_thread, nullptr)};
  const base::UniqueFd iterator{link ? bpf_iter_create(bpf_link__fd(link.get())) : -1};
  if (!iterator.valid()) {
    return {};
  }
  EntryRegisters all;
  entry_registers record{};
  while (read_record(iterator.get(), record)) {
    all.emplace(base::Tid{static_cast<pid_t>(record.tid)}, record);
  }
  return all;
}

}  // namespace pyinject::bpf

#else

namespace pyinject::bpf {

EntryRegisters read_entry_registers(base::Pid /*pid*/) { return {}; }

}  // namespace pyinject::bpf

#endif
