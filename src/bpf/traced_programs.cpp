#include "bpf/traced_programs.hpp"

#if PYINJECT_BPF

#include "bpf/program_time.hpp"
#include "bpf/skeleton.hpp"

#include <cerrno>
#include <utility>

#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::bpf {

void TracedPrograms::Close::operator()(bpf_object* object) const {
  add_program_time(object);
  bpf_object__close(object);
}

// The kernel attaches a program to the tracepoint or probe itself, once for all of its events: the
// others answer EEXIST. An event refuses a program of the wrong type with EINVAL
// (perf_event_set_bpf_prog() in kernel/events/core.c).
int TracedPrograms::set(const std::function<int(int program)>& set, Runs& runs) {
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    auto& program = programs_.at(i);
    load(program);
    if (program.fd < 0) {
      continue;
    }
    const int problem = set(program.fd);
    if (problem == 0 || (problem == EEXIST && runs.at(i))) {
      runs.at(i) = true;
      return 0;
    }
    if (problem != EINVAL) {
      return problem;
    }
  }
  return EINVAL;
}

// The event neither samples nor counts: the kernel runs the tracepoint's programs if there is any
// event of it.
bool TracedPrograms::run_at(std::uint64_t tracepoint, base::Pid recorded) {
  if (events_.contains(tracepoint)) {
    return true;
  }
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = tracepoint;
  attributes.disabled = 1;
  base::UniqueFd event{static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, recorded.value(), -1, -1, PERF_FLAG_FD_CLOEXEC))};
  Runs runs{};
  const auto set_own = [&event](int program) {
    return ::ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program) == 0 ? 0 : errno;
  };
  if (!event.valid() || set(set_own, runs) != 0) {
    return false;
  }
  events_.emplace(tracepoint, std::move(event));
  return true;
}

void TracedPrograms::load(Program& program) const {
  if (std::exchange(program.tried, true)) {
    return;
  }
  std::size_t size = 0;
  const auto* const bytes = sampler_bpf__elf_bytes(&size);
  bpf_object_open_opts options{};
  options.sz = sizeof options;
  options.object_name = bpf_object__name(sampler_);  // the names of maps contain it
  std::unique_ptr<bpf_object, Close> object{bpf_object__open_mem(bytes, size, &options)};
  if (!object) {
    return;
  }
  const auto* const wanted = bpf_object__find_program_by_name(object.get(), program.name);
  bpf_program* each = nullptr;
  bpf_object__for_each_program(each, object.get()) {
    (void)bpf_program__set_autoload(each, each == wanted);
  }
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.get()) {
    const auto* const own = bpf_object__find_map_by_name(sampler_, bpf_map__name(map));
    if (own == nullptr || bpf_map__reuse_fd(map, bpf_map__fd(own)) != 0) {
      return;
    }
  }
  if (bpf_object__load(object.get()) == 0) {
    program.fd = bpf_program__fd(wanted);
    program.object = std::move(object);
  }
}

}  // namespace pyinject::bpf

#endif
