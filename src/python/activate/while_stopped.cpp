#include "python/activate/while_stopped.hpp"

#include "base/fault.hpp"
#include "procfs/own_rights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <variant>

namespace pyinject::python {

namespace {

using std::chrono::milliseconds;

// Time limit for achieving a stop. A thread in state D (vfork, a dead NFS server) never stops; with
// many runnable threads a stop takes a few time slices.
constexpr milliseconds kFirstPatience{25};
constexpr milliseconds kMostPatience{200};
constexpr milliseconds kFirstPause{2};
constexpr milliseconds kMostPause{64};
// Time for other tracers to detach. gdb and strace stay; a tracer in a pid namespace that is
// invisible from here, which leads to EPERM, may be another perf-pyinject.
constexpr milliseconds kPatienceWithTracers{500};

bool may_succeed_later(tracee::StopFailure::Why why, const base::Deadline& tracers_end) {
  using Why = tracee::StopFailure::Why;
  switch (why) {
    case Why::kDeadline:
    case Why::kTracedBriefly:
      return true;
    case Why::kTraced:
    case Why::kDenied:
      return !tracers_end.expired();
    case Why::kTooManyThreads:
    case Why::kGone:
      break;
  }
  return false;
}

Refusal refusal_of(const tracee::StopFailure& failure) {
  using Why = tracee::StopFailure::Why;
  const auto who = fmt::format("tid {}: {}", failure.thread.value(), failure.detail);
  switch (failure.why) {
    case Why::kGone:
      return exited();
    case Why::kTraced:
      return {.reason = Reason::kTraced,
              .found = who,
              .remedy = "detach that debugger or tracer first"};
    case Why::kTracedBriefly:
      return {.reason = Reason::kTraced,
              .found = who + ", another perf-pyinject",
              .remedy = "try again when it has detached"};
    case Why::kDenied:
      return {.reason = Reason::kNoPermission,
              .found = who,
              .remedy = procfs::how_to_get(procfs::Capability::kSysPtrace)};
    case Why::kTooManyThreads:
      return {.reason = Reason::kStopDeadline, .found = failure.detail, .remedy = ""};
    case Why::kDeadline:
      break;
  }
  return {.reason = Reason::kStopDeadline,
          .found = "it could not be stopped: " + who,
          .remedy = "try again when it no longer waits inside the kernel, or for a CPU"};
}

}  // namespace

std::optional<Refusal> while_stopped(
    const base::ProcessId& id, base::Deadline deadline, std::chrono::nanoseconds& stopped,
    const std::function<AfterStop(const tracee::StoppedProcess&)>& work) {
  std::optional<Refusal> refusal;
  const auto tracers_end = base::Deadline::after(kPatienceWithTracers);
  milliseconds patience = kFirstPatience;
  milliseconds between = kFirstPause;
  while (true) {
    bool again = false;
    tracee::on_tracer_thread([&] {
      auto attempt =
          tracee::StoppedProcess::stop(id, deadline.earlier(base::Deadline::after(patience)));
      if (const auto* failure = std::get_if<tracee::StopFailure>(&attempt)) {
        again = may_succeed_later(failure->why, tracers_end);
        refusal = refusal_of(*failure);
        return;
      }
      auto& process = std::get<tracee::StoppedProcess>(attempt);
      auto after = work(process);
      refusal = std::move(after.refusal);
      again = after.again;
      stopped = process.release();
      base::reached(base::Step::kAllReleased);
    });
    if (!again || deadline.expired()) {
      return refusal;
    }
    patience = std::min(patience * 2, kMostPatience);
    std::this_thread::sleep_for(between);
    between = std::min(between * 2, kMostPause);
  }
}

Refusal exited() {
  return {.reason = Reason::kExited, .found = "the process exited", .remedy = ""};
}

}  // namespace pyinject::python
