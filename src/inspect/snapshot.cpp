#include "pyinject/inspect/snapshot.hpp"

#include "base/clock.hpp"
#include "base/user_name.hpp"
#include "inspect/described_call.hpp"
#include "inspect/kept_memory.hpp"
#include "inspect/process_files.hpp"
#include "inspect/process_stop.hpp"
#include "inspect/python_side.hpp"
#include "memory/process_memory.hpp"
#include "procfs/blocked_task.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/namespaces.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/deadline.hpp"
#include "python/layout/process_image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include <sys/syscall.h>

namespace pyinject::inspect {

namespace {

// Retries for a thread that ran between two reads.
constexpr int kAttempts = 3;
// Threads that wait for a GIL wake up every 5 ms (sys.getswitchinterval()) to request it; on a busy
// machine, they then wait for a processor.
constexpr std::chrono::milliseconds kUntilAsleep{60};
constexpr std::chrono::milliseconds kBetweenLooks{1};

// A thread just before a stop.
struct ThreadBefore {
  std::string name;
  int processor = 0;
  Activity activity = Activity::kOther;
  std::optional<procfs::BlockedCall> call;
  std::vector<std::string> kernel;
};

// The futex that CALL uses.
std::optional<std::uint64_t> futex_of(const procfs::BlockedCall& call) {
  return call.number == SYS_futex ? std::optional{call.arguments[0]} : std::nullopt;
}

class SnapshotTaker {
 public:
  // ALIVE: a thread of PID that has not exited, as a process: it names the memory and the files.
  SnapshotTaker(base::Pid pid, base::Pid alive, PythonSide* python)
      : pid_{pid}, memory_{alive}, files_{alive}, python_{python}, alive_{alive} {}

  [[nodiscard]] std::vector<ThreadSnapshot> threads(Pace pace);

  // The same with a stop: call look_before() shortly before it, read_stopped() during it, and
  // take_stopped() after it. read_stopped(): false if another stop may show more.
  void look_before();
  [[nodiscard]] bool read_stopped(std::span<const StoppedThread> stopped);
  [[nodiscard]] std::vector<ThreadSnapshot> take_stopped();

 private:
  struct Seen {
    char state = '?';
    std::uint64_t switches = 0;
    [[nodiscard]] bool runs() const { return state == 'R'; }
    bool operator==(const Seen&) const = default;
  };
  [[nodiscard]] std::optional<Seen> look(base::Tid tid) const;
  // nullopt: it has exited.
  [[nodiscard]] std::optional<ThreadSnapshot> read_thread(base::Tid tid);
  void add_activity(ThreadSnapshot& thread, char state) const;
  [[nodiscard]] std::optional<procfs::BlockedCall> read_call(base::Tid tid) const;
  // The futex that it waits for.
  std::optional<std::uint64_t> add_call(ThreadSnapshot& thread);
  [[nodiscard]] ThreadSnapshot stopped_thread(const StoppedThread& stopped);

  base::Pid pid_;
  memory::ProcessMemory memory_;
  ProcessFiles files_;
  PythonSide* python_;
  // Of the stop.
  std::map<base::Tid, ThreadBefore> before_;
  std::map<base::Tid, ThreadSnapshot> stopped_;
  std::map<base::Tid, procfs::BlockedCall> calls_;
  base::Pid alive_;
  std::optional<KeptMemory> kept_;
};

std::optional<SnapshotTaker::Seen> SnapshotTaker::look(base::Tid tid) const {
  const auto status = procfs::read_status(pid_, tid);
  return status ? std::optional{Seen{.state = status->state, .switches = status->switches}}
                : std::nullopt;
}

void SnapshotTaker::add_activity(ThreadSnapshot& thread, char state) const {
  switch (state) {
    case 'R': {
      const auto on_processor = procfs::read_on_processor(pid_, thread.tid);
      thread.activity = !on_processor   ? Activity::kRunningOrRunnable
                        : *on_processor ? Activity::kOnProcessor
                                        : Activity::kRunnable;
      return;
    }
    case 'S':
      thread.activity = Activity::kSleeping;
      return;
    case 'D':
      thread.activity = Activity::kUninterruptible;
      return;
    case 'T':
      thread.activity = Activity::kStopped;
      return;
    case 't':
      thread.activity = Activity::kTraced;
      return;
    case 'Z':
    case 'X':
      thread.activity = Activity::kZombie;
      return;
    default:
      thread.activity = Activity::kOther;
  }
}

std::optional<procfs::BlockedCall> SnapshotTaker::read_call(base::Tid tid) const {
  const auto text = procfs::read_system_call(pid_, tid);
  return text ? procfs::parse_blocked_call(*text) : std::nullopt;
}

std::optional<std::uint64_t> SnapshotTaker::add_call(ThreadSnapshot& thread) {
  const auto read = read_call(thread.tid);
  if (!read) {
    return std::nullopt;
  }
  const auto call = procfs::continued_call(*read, thread.kernel);
  thread.call = describe_call(call, {.memory = memory_,
                                     .file = [this](int fd) { return files_.describe(fd); },
                                     .now = base::read_clock});
  return futex_of(call);
}

std::optional<ThreadSnapshot> SnapshotTaker::read_thread(base::Tid tid) {
  const auto stat = procfs::read_stat(pid_, tid);
  if (!stat) {
    return std::nullopt;
  }
  ThreadSnapshot thread;
  thread.tid = tid;
  thread.name = stat->name;
  thread.processor = stat->processor;
  add_activity(thread, stat->state);
  std::optional<std::uint64_t> futex;
  if (stat->state != 'R' && stat->state != 'Z' && stat->state != 'X') {
    for (auto& frame : procfs::read_kernel_stack(pid_, tid)) {
      thread.kernel.push_back(std::move(frame.name));
    }
    futex = add_call(thread);
  }
  if (python_ != nullptr) {
    python_->add_frames(thread);
    python_->add_gil(thread, futex);
  }
  return thread;
}

std::vector<ThreadSnapshot> SnapshotTaker::threads(Pace pace) {
  std::map<base::Tid, ThreadSnapshot> threads;
  auto left = procfs::list_tasks(pid_);
  const auto deadline =
      base::Deadline::after(pace == Pace::kOnce ? kUntilAsleep : std::chrono::milliseconds{0});
  std::vector<base::Tid> awake;  // threads that may wait for a GIL
  for (int attempt = 0; !left.empty(); ++attempt) {
    std::map<base::Tid, Seen> before;
    for (const auto tid : left) {
      if (const auto seen = look(tid)) {
        before.emplace(tid, *seen);
      }
    }
    if (python_ != nullptr) {
      python_->read(attempt == 0 ? std::span<const base::Tid>{} : std::span<const base::Tid>{left});
    }
    left.clear();
    awake.clear();
    for (const auto& [tid, seen] : before) {
      auto thread = read_thread(tid);
      const auto after = look(tid);
      if (!thread || !after) {
        threads.erase(tid);
        continue;
      }
      const bool running = after->runs() || runs(thread->activity);
      thread->ran_meanwhile = !running && seen != *after;
      thread->switches = after->switches;
      if (thread->ran_meanwhile || (running && !after->runs())) {
        left.push_back(tid);
      } else if (running && python_ != nullptr && python_->may_want_gil(tid)) {
        awake.push_back(tid);
      }
      threads.insert_or_assign(tid, std::move(*thread));
    }
    if (attempt + 1 >= kAttempts) {
      left.clear();
    }
    if (!awake.empty() && !deadline.expired()) {
      left.insert(left.end(), awake.begin(), awake.end());
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
  if (python_ != nullptr) {
    python_->settle_gil(threads);
  }
  std::vector<ThreadSnapshot> all;
  all.reserve(threads.size());
  for (auto& [tid, thread] : threads) {
    all.push_back(std::move(thread));
  }
  return all;
}

void SnapshotTaker::look_before() {
  before_.clear();
  for (const auto tid : procfs::list_tasks(pid_)) {
    const auto stat = procfs::read_stat(pid_, tid);
    if (!stat) {
      continue;
    }
    ThreadSnapshot seen;
    seen.tid = tid;
    add_activity(seen, stat->state);
    ThreadBefore before{.name = stat->name,
                        .processor = stat->processor,
                        .activity = seen.activity,
                        .call = {},
                        .kernel = {}};
    if (!runs(seen.activity) && seen.activity != Activity::kZombie) {
      for (auto& frame : procfs::read_kernel_stack(pid_, tid)) {
        before.kernel.push_back(std::move(frame.name));
      }
      before.call = read_call(tid);
    }
    before_.emplace(tid, std::move(before));
  }
}

// The registers say what the stop has interrupted; what was read before says the rest, if the
// thread was in the same call then.
ThreadSnapshot SnapshotTaker::stopped_thread(const StoppedThread& stopped) {
  ThreadSnapshot thread;
  thread.tid = stopped.tid;
  const auto found = before_.find(stopped.tid);
  const ThreadBefore* const before = found == before_.end() ? nullptr : &found->second;
  if (before != nullptr) {
    thread.name = before->name;
    thread.processor = before->processor;
  } else if (const auto stat = procfs::read_stat(pid_, stopped.tid)) {
    thread.name = stat->name;
    thread.processor = stat->processor;
  }
  if (stopped.call) {
    const bool same = before != nullptr && before->call == stopped.call;
    thread.activity = same && before->activity == Activity::kUninterruptible
                          ? Activity::kUninterruptible
                          : Activity::kSleeping;
    if (same) {
      thread.kernel = before->kernel;
    }
  } else {
    thread.activity = before != nullptr && runs(before->activity) ? before->activity
                                                                  : Activity::kRunningOrRunnable;
  }
  if (stopped.by_signal) {
    thread.activity = Activity::kStopped;
  }
  return thread;
}

bool SnapshotTaker::read_stopped(std::span<const StoppedThread> stopped) {
  stopped_.clear();
  calls_.clear();
  kept_.emplace(alive_);
  const bool good = python_ == nullptr || python_->read_stopped();
  for (const auto& one : stopped) {
    auto thread = stopped_thread(one);
    const auto call =
        one.call ? std::optional{procfs::continued_call(*one.call, thread.kernel)} : std::nullopt;
    if (call) {
      calls_.emplace(one.tid, *call);
      // Keeps the memory and the files that its arguments lead to.
      (void)describe_call(*call, {.memory = *kept_,
                                  .file =
                                      [this](int fd) {
                                        files_.note(fd);
                                        return std::string{};
                                      },
                                  .now = base::read_clock});
    }
    if (python_ != nullptr) {
      python_->add_frames(thread);
      python_->add_gil(thread, call ? futex_of(*call) : std::nullopt);
    }
    stopped_.emplace(one.tid, std::move(thread));
  }
  return good;
}

std::vector<ThreadSnapshot> SnapshotTaker::take_stopped() {
  if (kept_) {
    kept_->close();
  }
  for (const auto& [tid, before] : before_) {
    if (before.activity == Activity::kZombie && !stopped_.contains(tid)) {
      ThreadSnapshot zombie;
      zombie.tid = tid;
      zombie.name = before.name;
      zombie.processor = before.processor;
      zombie.activity = Activity::kZombie;
      stopped_.emplace(tid, std::move(zombie));
    }
  }
  std::vector<ThreadSnapshot> all;
  for (auto& [tid, thread] : stopped_) {
    if (const auto call = calls_.find(tid); call != calls_.end()) {
      thread.call =
          describe_call(call->second, {.memory = *kept_,
                                       .file = [this](int fd) { return files_.describe(fd); },
                                       .now = base::read_clock});
    }
    all.push_back(std::move(thread));
  }
  return all;
}

// A thread that has exited, as the main thread may have, has no memory and no files any more.
base::Pid living_task(base::Pid pid) {
  for (const auto tid : procfs::list_tasks(pid)) {
    const auto stat = procfs::read_stat(pid, tid);
    if (stat && stat->state != 'Z' && stat->state != 'X') {
      return base::Pid{tid.value()};
    }
  }
  return pid;
}

void describe_process(ProcessSnapshot& process) {
  constexpr std::size_t kEffective = 1;
  const auto status = procfs::read_status(process.pid);
  if (status) {
    process.user = base::user_name(status->uids.at(kEffective));
    process.main_thread_exited = status->state == 'Z' && status->threads > 1;
  }
  process.command = procfs::read_command(process.pid);
  if (process.command.empty() && status) {
    process.command = fmt::format("[{}]", status->name);
  }
}

}  // namespace

std::string_view name(Activity activity) {
  switch (activity) {
    case Activity::kOnProcessor:
      return "on_cpu";
    case Activity::kRunnable:
      return "runnable";
    case Activity::kRunningOrRunnable:
      return "running_or_runnable";
    case Activity::kSleeping:
      return "sleeping";
    case Activity::kUninterruptible:
      return "uninterruptible";
    case Activity::kStopped:
      return "stopped";
    case Activity::kTraced:
      return "traced";
    case Activity::kZombie:
      return "zombie";
    case Activity::kOther:
      return "other";
    case Activity::kUnknown:
      return "unknown";
  }
  return "other";
}

namespace {

void note_stop_by_signal(ProcessSnapshot& process) {
  process.stopped = std::ranges::all_of(
      process.threads, [](const auto& thread) { return thread.activity == Activity::kStopped; });
}

}  // namespace

std::set<base::Tid> show_only(ProcessSnapshot& process, const std::set<base::Tid>& tids) {
  std::set<base::Tid> found;
  for (auto& thread : process.threads) {
    thread.shown = tids.contains(thread.tid);
    if (thread.shown) {
      found.insert(thread.tid);
    }
  }
  const auto of_others = [&tids](const auto& one) {
    return !one.thread || !tids.contains(*one.thread);
  };
  std::erase_if(process.tasks, of_others);
  std::erase_if(process.greenlets, of_others);
  return found;
}

std::optional<ProcessSnapshot> take_snapshot(base::Pid pid, const python::Target* target,
                                             const SnapshotOptions& options) {
  const auto pace = options.pace;
  ProcessSnapshot process;
  process.pid = pid;
  const auto python =
      python_side_of(target, std::make_shared<python::RunningProcess>(pid), process);
  process.threads = SnapshotTaker{pid, living_task(pid), python.get()}.threads(pace);
  if (python) {
    if (options.locals) {
      python->want_locals();
    }
    std::set<base::Tid> steady;
    for (const auto& thread : process.threads) {
      if (!thread.ran_meanwhile) {
        steady.insert(thread.tid);
      }
    }
    python->read_objects([&steady](base::Tid tid) { return steady.contains(tid); });
    if (pace == Pace::kOnce) {
      python->read_greenlets();
    }
    python->add_objects(process);
  }
  describe_process(process);
  const bool other = target != nullptr && procfs::read_process_id(pid) != target->id;
  if (process.threads.empty() || other) {
    return std::nullopt;
  }
  note_stop_by_signal(process);
  return process;
}

std::variant<ProcessSnapshot, python::Refusal> take_snapshot_stopped(base::Pid pid,
                                                                     const python::Target* target,
                                                                     ProcessStop& stop,
                                                                     bool locals) {
  const python::Refusal exited{
      .reason = python::Reason::kExited, .found = "it has exited", .remedy = {}};
  const auto id = target != nullptr ? target->id : procfs::read_process_id(pid);
  if (!id) {
    return exited;
  }
  ProcessSnapshot process;
  process.pid = pid;
  const auto python =
      python_side_of(target, std::make_shared<python::RunningProcess>(pid), process);
  SnapshotTaker taker{pid, living_task(pid), python.get()};
  if (python) {
    // During the stop, most names are known already.
    python->read({});
    python->read_objects([](base::Tid) { return true; });
    python->read_greenlets();
    if (locals) {
      python->want_locals();
    }
  }
  taker.look_before();
  std::chrono::nanoseconds stopped{};
  auto refusal = stop.stop(*id, stopped, [&](std::span<const StoppedThread> threads) {
    const bool good = taker.read_stopped(threads);
    if (python) {
      python->read_objects_stopped();
    }
    return good;
  });
  if (refusal) {
    return *refusal;
  }
  process.stopped_for = stopped;
  process.threads = taker.take_stopped();
  if (python) {
    python->add_objects(process);
  }
  describe_process(process);
  if (process.threads.empty()) {
    return exited;
  }
  note_stop_by_signal(process);
  return process;
}

}  // namespace pyinject::inspect
