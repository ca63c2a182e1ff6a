#include "tracee/stopped_process.hpp"

#include "base/fault.hpp"
#include "interruptible_wait.hpp"
#include "open_stop.hpp"
#include "priority.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "tracee/wait_status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

namespace pyinject::tracee {

namespace {

using std::chrono::steady_clock;

// A process with more threads is refused rather than stopped for long.
constexpr std::size_t kMostThreads = 32768;

// How often threads are listed before the first stop; later ones are found during the stop.
constexpr int kListings = 4;

// How often a listing that finds no new thread is repeated while threads are missing from it. At
// worst one in 200 was incomplete: the limit is for a kernel that counts threads differently.
constexpr int kIncompleteListings = 8;

long trace(__ptrace_request request, base::Tid thread, long data = 0) {
  return ::ptrace(request, thread.value(), 0L, data);
}

std::string thread_state(base::Tid thread) {
  const auto status = procfs::read_status(base::Pid{thread.value()});
  return status ? fmt::format("in state {}", status->state) : "gone";
}

// 0: none.
int signal_to_deliver(const StopKind& kind) {
  const auto* const stop = std::get_if<SignalStop>(&kind);
  return stop != nullptr ? stop->signal : 0;
}

StopFailure seize_failure(base::Tid thread, int error) {
  StopFailure failure{.why = StopFailure::Why::kDenied,
                      .thread = thread,
                      .detail = "ptrace(PTRACE_SEIZE): " + base::errno_text(error)};
  const auto status = procfs::read_status(base::Pid{thread.value()});
  const bool gone = !status && (errno == ENOENT || errno == ESRCH);
  if (gone || error == ESRCH || (status && (status->state == 'Z' || status->state == 'X'))) {
    failure.why = StopFailure::Why::kGone;
  } else if (status && status->tracer.value() != 0) {
    failure.why = traces_briefly(status->tracer) ? StopFailure::Why::kTracedBriefly
                                                 : StopFailure::Why::kTraced;
    failure.detail = fmt::format("traced by pid {}", status->tracer.value());
  }
  return failure;
}

}  // namespace

bool traces_briefly(base::Pid tracer) {
  const auto status = procfs::read_status(tracer);
  return status && status->name == kTracerName;
}

StoppedProcess::StoppedProcess(base::Pid pid)
    : pid_{pid}, tasks_{procfs::open_tasks(pid)}, since_{steady_clock::now()} {}

StoppedProcess::StoppedProcess(StoppedProcess&& other) noexcept
    : pid_{other.pid_},
      stat_{std::move(other.stat_)},
      tasks_{std::move(other.tasks_)},
      priority_{std::move(other.priority_)},
      since_{other.since_},
      threads_{std::move(other.threads_)},
      seen_{std::move(other.seen_)},
      ended_{std::move(other.ended_)},
      attached_{std::exchange(other.attached_, false)},
      all_detached_{other.all_detached_} {
  other.threads_.clear();
}

StoppedProcess::~StoppedProcess() { release(); }

// A job-control stop survives the detach: the kernel stops the thread again.
//
// After a failed attempt, a thread may be in a signal-delivery stop that wait_for() has not seen:
// to avoid losing the signal, the detach must pass its number on, which also keeps its siginfo
// (kernel ptrace_signal()). A thread that is not stopped must not be detached, since it may be
// entering such a stop. The exit of this thread detaches it and delivers the signal (kernel
// exit_ptrace()).
std::chrono::nanoseconds StoppedProcess::release() {
  for (const auto& thread : threads_) {
    bool detached = false;
    if (thread.stopped) {
      detached = trace(PTRACE_DETACH, thread.tid) == 0;
    } else if (const auto status = stop_of(thread.tid)) {
      const int signal = signal_to_deliver(decode_wait_status(*status));
      detached = trace(PTRACE_DETACH, thread.tid, signal) == 0;
    }
    all_detached_ = all_detached_ && detached;
  }
  threads_.clear();
  if (std::exchange(attached_, false)) {
    report_detached(all_detached_);
  }
  const auto stopped = steady_clock::now() - since_;
  priority_.reset();
  return stopped;
}

// Seizes threads that are listed now and were not listed before. The listing may lack any thread
// behind one that is released meanwhile (kernel next_tid()): of a process with threads that end all
// the time, one in 200 to 1,500 did.
std::optional<StopFailure> StoppedProcess::seize_new() {
  const auto tasks = procfs::list_tasks(pid_);
  if (tasks.size() > kMostThreads) {
    return StopFailure{
        .why = StopFailure::Why::kTooManyThreads,
        .thread = base::Tid{pid_.value()},
        .detail = fmt::format("it has {} threads, more than {}", tasks.size(), kMostThreads)};
  }
  ended_.clear();
  for (const auto tid : tasks) {
    if (seen_.contains(tid)) {
      continue;
    }
    if (trace(PTRACE_SEIZE, tid, PTRACE_O_TRACEEXEC) != 0) {
      auto refused = seize_failure(tid, errno);
      if (refused.why == StopFailure::Why::kGone) {
        // Since the listing; or a first thread, before the others.
        ended_.push_back(tid);
        continue;
      }
      return refused;
    }
    attached_ = true;
    seen_.insert(tid);
    threads_.push_back({.tid = tid});
    base::reached(base::Step::kThreadSeized);
  }
  return std::nullopt;
}

std::optional<StopFailure> StoppedProcess::seize_all() {
  for (int listing = 0; listing < kListings; ++listing) {
    const auto before = threads_.size();
    if (auto failure = seize_new()) {
      return failure;
    }
    if (threads_.size() == before || all_seen()) {
      break;
    }
  }
  return std::nullopt;
}

// True if there are no threads besides those in threads_: one system call during the stop instead
// of a listing. False: list them to find out, also on a kernel that counts differently.
bool StoppedProcess::all_seen() const { return procfs::count_tasks(tasks_) == threads_.size(); }

// True if all COUNTED threads either stand or have ended. They were counted before this call, while
// those in threads_ stood: then none of the others can have taken the place of one that has ended.
bool StoppedProcess::accounts_for(std::size_t counted) const {
  const auto ended = std::count_if(ended_.begin(), ended_.end(), [this](base::Tid tid) {
    const auto stat = procfs::read_stat(pid_, tid);
    return stat && (stat->state == 'Z' || stat->state == 'X');
  });
  return counted == threads_.size() + static_cast<std::size_t>(ended);
}

// Stops all threads in threads_ and all that they have started meanwhile.
std::optional<StopFailure> StoppedProcess::stop_all(const InterruptibleWait& wait) {
  std::size_t standing = 0;
  for (int listings = 0; listings < kIncompleteListings;) {
    if (auto failure = stop_from(standing, wait)) {
      return failure;
    }
    standing = threads_.size();
    const auto counted = procfs::count_tasks(tasks_);
    if (counted == standing) {
      break;
    }
    // A running thread may have started another one, which must be stopped, too.
    if (auto failure = seize_new()) {
      return failure;
    }
    const bool found = threads_.size() > standing;
    if (!found && (!counted || accounts_for(*counted))) {
      break;
    }
    listings = found ? 0 : listings + 1;
  }
  return std::nullopt;
}

// Waits until threads_[INDEX] is stopped. Removes it from the list if it has exited.
std::optional<StopFailure> StoppedProcess::wait_for(std::size_t index,
                                                    const InterruptibleWait& wait) {
  const base::Tid tid = threads_[index].tid;
  while (true) {
    int status = 0;
    const auto waited = wait.wait(tid, status);
    if (waited == Waited::kDeadline) {
      return StopFailure{
          .why = StopFailure::Why::kDeadline, .thread = tid, .detail = thread_state(tid)};
    }
    const StopKind kind =
        waited == Waited::kNoChild ? StopKind{Ended{}} : decode_wait_status(status);
    if (std::holds_alternative<InterruptStop>(kind) || std::holds_alternative<GroupStop>(kind)) {
      threads_[index].stopped = true;
      threads_[index].job_control = std::holds_alternative<GroupStop>(kind);
      return std::nullopt;
    }
    if (std::holds_alternative<Ended>(kind)) {
      all_detached_ = false;  // a first thread is released to its parent when this thread exits
      seen_.erase(tid);       // another thread may have the number now
      threads_.erase(threads_.begin() + static_cast<std::ptrdiff_t>(index));
      return std::nullopt;
    }
    if (std::holds_alternative<EventStop>(kind)) {
      return StopFailure{.why = StopFailure::Why::kGone,
                         .thread = tid,
                         .detail = "it executes another program now"};
    }
    // Deliver the signal now, once; the interrupt stop follows. Continuing with the same number
    // keeps the siginfo (kernel ptrace_signal()).
    trace(PTRACE_CONT, tid, signal_to_deliver(kind));
  }
}

// Waits for the last thread first: when it has stopped, the others usually have, too, and one wait
// suffices.
std::optional<StopFailure> StoppedProcess::stop_from(std::size_t first,
                                                     const InterruptibleWait& wait) {
  for (std::size_t index = first; index < threads_.size(); ++index) {
    trace(PTRACE_INTERRUPT, threads_[index].tid);
    base::reached(base::Step::kThreadInterrupted);
  }
  for (std::size_t index = threads_.size(); index > first; --index) {
    if (auto failure = wait_for(index - 1, wait)) {
      return failure;
    }
    base::reached(base::Step::kThreadStopped);
  }
  return std::nullopt;
}

std::variant<StoppedProcess, StopFailure> StoppedProcess::stop(const base::ProcessId& id,
                                                               base::Deadline deadline) {
  const auto no_thread_left = [&id] {
    const bool gone = procfs::has_ended(id);
    return StopFailure{.why = gone ? StopFailure::Why::kGone : StopFailure::Why::kDeadline,
                       .thread = base::Tid{id.pid.value()},
                       .detail = gone ? "it has ended" : "its threads end and start too fast"};
  };
  StoppedProcess process{id.pid};
  const InterruptibleWait wait{deadline};
  if (auto failure = process.seize_all()) {
    return *failure;
  }
  // Stays true until the detach: a pid is reused only after all threads of its process are reaped,
  // and a traced thread cannot be reaped without its tracer.
  auto now = procfs::read_stat(id.pid);
  if (process.threads_.empty() || !now || now->start_time != id.start_time) {
    return no_thread_left();
  }
  process.priority_ = std::make_unique<TracerPriority>(processor_to_stop_at(*now));
  process.stat_ = std::move(*now);
  process.since_ = steady_clock::now();
  if (auto failure = process.stop_all(wait)) {
    return *failure;
  }
  if (process.threads_.empty()) {
    return no_thread_left();
  }
  base::reached(base::Step::kAllStopped);
  return process;
}

bool detach_remaining(base::Deadline deadline) {
  constexpr std::chrono::milliseconds kBetween{1};
  while (true) {
    int status = 0;
    const pid_t tid = ::waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
    if (tid < 0) {
      return errno == ECHILD;
    }
    if (tid > 0 && WIFSTOPPED(status)) {
      (void)trace(PTRACE_DETACH, base::Tid{tid}, signal_to_deliver(decode_wait_status(status)));
    } else if (tid == 0 && deadline.expired()) {
      return false;
    } else if (tid == 0) {
      std::this_thread::sleep_for(kBetween);
    }
  }
}

}  // namespace pyinject::tracee
