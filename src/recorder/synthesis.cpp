#include "recorder/synthesis.hpp"

#include "perfdata/byte_writer.hpp"
#include "perfdata/record_writer.hpp"
#include "procfs/maps.hpp"
#include "procfs/stat.hpp"
#include "procfs/tasks.hpp"

#include <fmt/format.h>

#include <climits>
#include <cstddef>
#include <cstring>
#include <string>

#include <sys/mman.h>

namespace pyinject::recorder {

namespace {

constexpr std::uint32_t kKernelPid = 0xffffffff;

perfdata::Mapping to_mapping(const procfs::Mapping& mapping, pid_t pid) {
  const auto bit = [](bool on, int value) { return on ? static_cast<std::uint32_t>(value) : 0U; };
  return {.pid = static_cast<std::uint32_t>(pid),
          .tid = static_cast<std::uint32_t>(pid),
          .start = mapping.begin.value(),
          .size = mapping.size(),
          .page_offset = mapping.offset,
          .major = mapping.device_major,
          .minor = mapping.device_minor,
          .inode = mapping.inode,
          .protection = bit(mapping.readable, PROT_READ) | bit(mapping.writable, PROT_WRITE) |
                        bit(mapping.executable, PROT_EXEC),
          .flags = static_cast<std::uint32_t>(mapping.shared ? MAP_SHARED : MAP_PRIVATE),
          // As the kernel and perf call it.
          .file = mapping.path.empty() ? "//anon"
                                       : mapping.path + (mapping.deleted ? " (deleted)" : "")};
}

}  // namespace

void Synthesis::kernel_code(std::uint64_t begin, std::uint64_t size, std::uint64_t offset,
                            std::string_view name) {
  perfdata::ByteWriter writer{record_, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL};
  writer.number(kKernelPid);
  writer.number(std::uint32_t{0});
  writer.number(begin);
  writer.number(size);
  writer.number(offset);
  writer.text(name, PATH_MAX - 1, sizeof(std::uint64_t));
  writer.zeros(sample_id_);
  writer.finish();
  write_(record_);
}

void Synthesis::kernel(const procfs::KernelCode& code) {
  if (code.begin == 0) {
    return;
  }
  kernel_code(code.begin, code.end - code.begin, code.begin, "[kernel.kallsyms]_text");
  for (const auto& module : procfs::read_modules()) {
    kernel_code(module.begin, module.size, 0, fmt::format("[{}]", module.name));
  }
}

void Synthesis::set_misc(std::uint16_t misc) {
  std::memcpy(record_.data() + offsetof(perf_event_header, misc), &misc, sizeof misc);
}

void Synthesis::task(pid_t pid, pid_t tid, pid_t parent) {
  const auto number = [](pid_t value) { return static_cast<std::uint32_t>(value); };
  const bool main = pid == tid;
  perfdata::make_fork({.pid = number(pid),
                       .parent_pid = number(main ? parent : pid),
                       .tid = number(tid),
                       .parent_tid = number(main ? parent : pid)},
                      sample_id_, record_);
  // Otherwise readers would give it its parent's mappings.
  set_misc(PERF_RECORD_MISC_FORK_EXEC);
  write_(record_);
  const auto name = procfs::read_comm(base::Pid{pid}, base::Tid{tid});
  perfdata::make_command(
      {.pid = number(pid), .tid = number(tid), .exec = false, .name = name.value_or("")},
      sample_id_, record_);
  write_(record_);
}

void Synthesis::process(pid_t pid) {
  const auto stat = procfs::read_stat(base::Pid{pid});
  if (!stat) {
    return;
  }
  for (const auto tid : procfs::list_tasks(base::Pid{pid})) {
    task(pid, tid.value(), stat->parent.value());
  }
  const auto maps = procfs::read_maps(base::Pid{pid});
  for (const auto& mapping : maps.value_or(std::vector<procfs::Mapping>{})) {
    if (mapping.executable || (data_ && mapping.inode != 0)) {
      const auto made = to_mapping(mapping, pid);
      files_.add(made);
      perfdata::make_mapping(made, sample_id_, record_);
      if (!mapping.executable) {
        set_misc(PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA);
      }
      write_(record_);
    }
  }
}

void Synthesis::processes(const std::vector<pid_t>& pids) {
  for (const auto pid : pids) {
    process(pid);
  }
  if (pids.empty()) {
    for (const auto pid : procfs::list_processes()) {
      process(pid.value());
    }
  }
}

}  // namespace pyinject::recorder
