#include "bpf/program_time.hpp"

#include <atomic>
#include <cstdint>

#if PYINJECT_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#endif

namespace pyinject::bpf {

namespace {

std::atomic<std::uint64_t> closed_programs_ns{0};

}  // namespace

std::chrono::nanoseconds program_time() {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(closed_programs_ns.load())};
}

#if PYINJECT_BPF

ProgramTimes::ProgramTimes() : statistics_{::bpf_enable_stats(BPF_STATS_RUN_TIME)} {}

void add_program_time(bpf_object* object) {
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    bpf_prog_info info{};
    std::uint32_t size = sizeof info;
    const int fd = bpf_program__fd(program);
    if (fd >= 0 && ::bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
      closed_programs_ns += info.run_time_ns;
    }
  }
}

#else

ProgramTimes::ProgramTimes() = default;

void add_program_time(bpf_object* /*object*/) {}

#endif

}  // namespace pyinject::bpf
