#include "inspect/stopped/traced_stop.hpp"

#include "pyinject/base/deadline.hpp"
#include "python/activate/while_stopped.hpp"
#include "tracee/stopped_process.hpp"

#include <vector>

namespace pyinject::inspect {

namespace {

constexpr std::chrono::seconds kPatience{2};
// A thread that is just calling a function may have a stack that cannot be read.
constexpr int kMostStops = 4;

StoppedThread describe(const tracee::StoppedThread& stopped, const tracee::Registers& registers) {
  StoppedThread thread{.tid = stopped.tid, .by_signal = stopped.job_control};
  const auto call = tracee::interrupted_call(registers);
  if (call.kind != tracee::Interrupted::kNo) {
    thread.call = procfs::BlockedCall{.number = static_cast<long>(call.number),
                                      .arguments = tracee::call_arguments(registers)};
  }
  return thread;
}

}  // namespace

std::optional<python::Refusal> TracedStop::stop(
    const base::ProcessId& id, std::chrono::nanoseconds& stopped,
    const std::function<bool(std::span<const StoppedThread> threads)>& work) {
  stopped = {};
  std::chrono::nanoseconds latest{};
  int stops = 0;
  auto refusal = python::while_stopped(
      id, base::Deadline::after(kPatience), latest, [&](const tracee::StoppedProcess& process) {
        stopped += std::exchange(latest, {});
        std::vector<StoppedThread> threads;
        std::map<base::Tid, tracee::Registers> all;
        for (const auto& thread : process.threads()) {
          // Without registers, it was killed during the stop.
          if (const auto registers = tracee::read_registers(thread.tid)) {
            threads.push_back(describe(thread, *registers));
            all.emplace(thread.tid, *registers);
          }
        }
        if (on_stop_) {
          on_stop_(all);
        }
        const bool done = work(threads);
        return python::AfterStop{.refusal = {}, .again = !done && ++stops < kMostStops};
      });
  stopped += latest;
  return refusal;
}

}  // namespace pyinject::inspect
