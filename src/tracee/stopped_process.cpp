#include "pyinject/tracee/stopped_process.hpp"

#include "interruptible_wait.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/fault.hpp"
#include "pyinject/procfs/status.hpp"
#include "pyinject/procfs/tasks.hpp"
#include "pyinject/tracee/wait_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <thread>

#include <sys/ptrace.h>
#include <sys/wait.h>

namespace pyinject::tracee {

namespace {

using std::chrono::steady_clock;

// A process with more threads than this is refused rather than stopped for long.
constexpr std::size_t kMostThreads = 32768;

long trace(__ptrace_request request, base::Tid thread, long data = 0) {
  return ::ptrace(request, thread.value(), 0L, data);
}

std::string thread_state(base::Tid thread) {
  const auto status = procfs::read_status(base::Pid{thread.value()});
  return status ? fmt::format("in state {}", status->state) : "gone";
}

StopFailure seize_failure(base::Tid thread, int error) {
  StopFailure failure{.why = StopFailure::Why::kDenied,
                      .thread = thread,
                      .detail = "ptrace(PTRACE_SEIZE): " + base::errno_text(error)};
  const auto status = procfs::read_status(base::Pid{thread.value()});
  if (!status || error == ESRCH || status->state == 'Z' || status->state == 'X') {
    failure.why = StopFailure::Why::kGone;
  } else if (status->tracer.value() != 0) {
    failure.why = StopFailure::Why::kTraced;
    failure.detail = fmt::format("traced by pid {}", status->tracer.value());
  }
  return failure;
}

}  // namespace

StoppedProcess::StoppedProcess(StoppedProcess&& other) noexcept
    : pid_{other.pid_},
      since_{other.since_},
      threads_{std::move(other.threads_)},
      seen_{std::move(other.seen_)} {
  other.threads_.clear();
}

StoppedProcess::~StoppedProcess() { release(); }

std::chrono::nanoseconds StoppedProcess::release() {
  for (const auto& thread : threads_) {
    // A job-control stop survives the detach: the kernel puts the thread back into it.
    trace(PTRACE_DETACH, thread.tid);
  }
  threads_.clear();
  return steady_clock::now() - since_;
}

// False: nothing new was there, or FAILURE says what went wrong.
bool StoppedProcess::attach_new(std::optional<StopFailure>& failure) {
  const auto tasks = procfs::list_tasks(pid_);
  if (tasks.empty() || tasks.size() > kMostThreads) {
    failure =
        StopFailure{.why = tasks.empty() ? StopFailure::Why::kGone : StopFailure::Why::kDenied,
                    .thread = base::Tid{pid_.value()},
                    .detail = fmt::format("{} threads", tasks.size())};
    return false;
  }
  bool any = false;
  for (const auto tid : tasks) {
    if (seen_.contains(tid)) {
      continue;
    }
    if (trace(PTRACE_SEIZE, tid) != 0) {
      auto refused = seize_failure(tid, errno);
      if (refused.why == StopFailure::Why::kGone) {
        continue;  // ended since the listing, or a first thread that ended before the others
      }
      failure = std::move(refused);
      return false;
    }
    seen_.insert(tid);
    base::reached(base::Step::kThreadSeized);
    trace(PTRACE_INTERRUPT, tid);
    base::reached(base::Step::kThreadInterrupted);
    threads_.push_back({.tid = tid});
    any = true;
  }
  return any;
}

// Waits until threads_[INDEX] stands. On its death it is taken out of the list.
std::optional<StopFailure> StoppedProcess::wait_for(std::size_t index, base::Deadline deadline) {
  const base::Tid tid = threads_[index].tid;
  while (true) {
    int status = 0;
    const auto waited = wait_interruptibly(tid, status, deadline);
    if (waited == Waited::kDeadline) {
      return StopFailure{
          .why = StopFailure::Why::kDeadline, .thread = tid, .detail = thread_state(tid)};
    }
    const StopKind kind =
        waited == Waited::kNoChild ? StopKind{Ended{}} : decode_wait_status(status);
    if (std::holds_alternative<InterruptStop>(kind)) {
      return std::nullopt;
    }
    if (std::holds_alternative<GroupStop>(kind)) {
      threads_[index].job_control = true;
      return std::nullopt;
    }
    if (std::holds_alternative<Ended>(kind)) {
      threads_.erase(threads_.begin() + static_cast<std::ptrdiff_t>(index));
      return std::nullopt;
    }
    // A signal is delivered now and once; the interrupt stop is still to come. Continuing with the
    // same number keeps the siginfo (kernel ptrace_signal()).
    const auto* signal = std::get_if<SignalStop>(&kind);
    trace(PTRACE_CONT, tid, signal != nullptr ? signal->signal : 0);
  }
}

std::variant<StoppedProcess, StopFailure> StoppedProcess::stop(base::Pid pid,
                                                               base::Deadline deadline) {
  StoppedProcess process{pid, steady_clock::now()};
  std::optional<StopFailure> failure;
  // A running thread may start another one: list again until nothing new is there.
  while (process.attach_new(failure)) {
    for (std::size_t index = 0; index < process.threads_.size();) {
      const auto size = process.threads_.size();
      if (process.threads_[index].stopped) {
        ++index;
        continue;
      }
      failure = process.wait_for(index, deadline);
      if (failure) {
        return *failure;
      }
      if (process.threads_.size() == size) {
        process.threads_[index].stopped = true;
        base::reached(base::Step::kThreadStopped);
        ++index;
      }
    }
  }
  if (failure) {
    return *failure;
  }
  if (process.threads_.empty()) {
    return StopFailure{
        .why = StopFailure::Why::kGone, .thread = base::Tid{pid.value()}, .detail = "it has ended"};
  }
  base::reached(base::Step::kAllStopped);
  return process;
}

void on_tracer_thread(const std::function<void()>& work) {
  std::exception_ptr failure;
  std::thread tracer{[&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }};
  tracer.join();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace pyinject::tracee
