#include "base/clock.hpp"
#include "inspect/gil_view.hpp"
#include "live/function_numbers.hpp"
#include "live/stack_source.hpp"
#include "memory/process_memory.hpp"
#include "procfs/status.hpp"
#include "procfs/tasks.hpp"
#include "procfs/usage.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "python/layout/frame_reading.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <sys/timerfd.h>
#include <unistd.h>

namespace pyinject::live {

namespace {

using base::Tid;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// Reading a process is followed by a pause so many times as long, for each process.
constexpr int kPause = 19;
// Retries for a stack that keeps changing; fewer if reading is slow.
constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kPatience{50};
// If all stacks may be those of waits for so many periods of processor time, the latest one at work
// stands for it, or, without one, one of these: on a machine with one processor, nothing runs while
// this tool does.
constexpr int kMostPeriods = 50;

struct Process {
  Process(python::StackReader its_reader, const python::RuntimeLayout& its_layout,
          const python::Target& target)
      : reader{std::move(its_reader)},
        memory{target.id.pid},
        layout{its_layout},
        gils{memory, layout, target.addresses.runtime, python::ThreadNumbers{target.id.pid}} {}

  struct Thread {
    nanoseconds on_cpu{};
    nanoseconds unassigned{};  // processor time that no stack stands for yet
    std::uint64_t waits = 0;   // how many it had begun when works() was called
    nanoseconds seen{};        // ON_CPU then
    bool working = false;      // what works() said
    // The latest stack that is not that of a wait; nullptr: none yet.
    std::shared_ptr<const sample::Stack> at_work{};
  };

  python::StackReader reader;
  memory::ProcessMemory memory;
  python::RuntimeLayout layout;
  inspect::GilView gils;
  std::map<Tid, Thread> threads;
  nanoseconds latest{};  // when it was read, on the monotonic clock
  nanoseconds next{};    // not to be read before
  NumberedFrames frames;
};

// A thread that has been woken up is runnable (R), but still in the function that waits, until it
// gets a processor. This one is on a processor: it has come to one once more than it has left one.
// Or it has run since the call before, and has not begun to wait.
bool works(base::Pid pid, Tid tid, Process::Thread& thread) {
  const auto status = procfs::read_status(pid, tid);
  const auto usage = procfs::read_thread_usage(pid, tid);
  if (!status || !usage) {
    return false;
  }
  const bool waited = thread.waits != status->voluntary_switches;
  const bool ran = thread.seen != usage->on_cpu;
  thread.waits = status->voluntary_switches;
  thread.seen = usage->on_cpu;
  return usage->arrivals == 0 || usage->arrivals > status->switches || (ran && !waited);
}

bool has_waited(base::Pid pid, Tid tid, const Process::Thread& thread) {
  const auto status = procfs::read_status(pid, tid);
  return !status || status->voluntary_switches != thread.waits;
}

bool holds_gil(Process& process, Tid tid) {
  process.gils.update();
  return std::ranges::any_of(process.gils.gils(),
                             [tid](const inspect::Gil& gil) { return gil.holder == tid; });
}

class ReadingSource : public StackSource {
 public:
  ReadingSource(const SourceOptions& options, StackReceiver receiver)
      : options_{options},
        functions_{std::move(receiver.code), 1},
        receiver_{std::move(receiver.stack)},
        timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)} {
    if (!timer_.valid()) {
      throw base::SystemError{"timerfd_create", errno};
    }
  }

  std::optional<std::string> add(const python::Target& target) override;
  void remove(base::Pid pid) override { processes_.erase(pid); }
  std::optional<std::string> begin() override {
    const timespec period{.tv_sec = options_.period / seconds{1},
                          .tv_nsec = (options_.period % seconds{1}).count()};
    const itimerspec always{.it_interval = period, .it_value = period};
    if (::timerfd_settime(timer_.get(), 0, &always, nullptr) != 0) {
      throw base::SystemError{"timerfd_settime", errno};
    }
    return std::nullopt;
  }
  void look_for_modules() override {}
  [[nodiscard]] int fd() const override { return timer_.get(); }
  void collect() override;
  [[nodiscard]] std::uint64_t lost() const override { return lost_; }

 private:
  // The threads of PROCESS that run, and to which processor time must be assigned.
  std::vector<Tid> running(base::Pid pid, Process& process, nanoseconds since) const;
  void read(base::Pid pid, Process& process, std::vector<Tid> tids);
  void add_stack(base::Pid pid, Process& process, Tid tid, const python::ThreadStack* stack,
                 bool at_work, bool held_before);

  SourceOptions options_;
  FunctionNumbers functions_;
  std::function<void(const sample::Stack&, std::uint64_t, bool)> receiver_;
  base::UniqueFd timer_;
  std::map<base::Pid, Process> processes_;
  std::uint64_t lost_ = 0;
};

std::optional<std::string> ReadingSource::add(const python::Target& target) {
  auto prepared = python::prepare_frame_reading(target);
  if (auto* const why = std::get_if<std::string>(&prepared)) {
    return std::move(*why);
  }
  auto reader = python::StackReader::of(target);
  if (auto* const why = std::get_if<std::string>(&reader)) {
    return std::move(*why);
  }
  processes_.erase(target.id.pid);
  const auto [added, fresh] =
      processes_.try_emplace(target.id.pid, std::get<python::StackReader>(std::move(reader)),
                             std::get<python::FrameReading>(prepared).layout, target);
  added->second.latest = base::time_by(CLOCK_MONOTONIC);
  return std::nullopt;
}

void ReadingSource::collect() {
  std::uint64_t expirations = 0;
  if (::read(timer_.get(), &expirations, sizeof expirations) < 0) {
    return;  // not yet
  }
  const auto count = static_cast<int>(processes_.size());
  for (auto& [pid, process] : processes_) {
    const auto now = base::time_by(CLOCK_MONOTONIC);
    if (now < process.next) {
      continue;
    }
    const auto begin = base::time_by(CLOCK_THREAD_CPUTIME_ID);
    auto tids = running(pid, process, now - std::exchange(process.latest, now));
    if (!tids.empty()) {
      read(pid, process, std::move(tids));
    }
    const auto cost = base::time_by(CLOCK_THREAD_CPUTIME_ID) - begin;
    process.next = base::time_by(CLOCK_MONOTONIC) + kPause * count * cost;
  }
}

std::vector<Tid> ReadingSource::running(base::Pid pid, Process& process, nanoseconds since) const {
  std::vector<Tid> tids;
  std::map<Tid, Process::Thread> threads;
  for (const auto tid : procfs::list_tasks(pid)) {
    const auto usage = procfs::read_thread_usage(pid, tid);
    if (!usage) {
      continue;
    }
    const auto known = process.threads.find(tid);
    auto thread =
        known == process.threads.end() ? Process::Thread{.on_cpu = usage->on_cpu} : known->second;
    const bool runs = usage->state == 'R';
    // Kernels that do not count: a thread that runs has run since the round before.
    thread.unassigned +=
        usage->on_cpu.count() == 0 ? (runs ? since : nanoseconds{}) : usage->on_cpu - thread.on_cpu;
    thread.on_cpu = usage->on_cpu;
    if (runs && thread.unassigned >= options_.period) {
      thread.working = works(pid, tid, thread);
      if (thread.working || thread.unassigned >= kMostPeriods * options_.period) {
        tids.push_back(tid);
      }
    }
    threads.emplace(tid, thread);
  }
  process.threads = std::move(threads);
  return tids;
}

// A thread has the GIL if it has it before its stack is read, and afterwards. A thread whose stack
// cannot be read, or that began to wait meanwhile, keeps its time for the next stack.
void ReadingSource::read(base::Pid pid, Process& process, std::vector<Tid> tids) {
  std::map<Tid, python::ThreadStack> stacks;
  std::vector<Tid> unread;
  const auto deadline = base::Deadline::after(kPatience);
  for (int attempt = 0; attempt < kAttempts && !tids.empty(); ++attempt) {
    if (attempt > 0 && deadline.expired()) {
      break;
    }
    std::set<Tid> held;
    if (options_.gil) {
      process.gils.update();
      for (const auto& gil : process.gils.gils()) {
        held.insert(gil.holder.value_or(Tid{0}));
      }
    }
    for (auto& stack : process.reader.read(tids)) {
      if (stack.settled) {
        stacks.insert_or_assign(stack.tid, std::move(stack));
      } else {
        unread.push_back(stack.tid);
      }
    }
    unread.insert(unread.end(), process.reader.unread().begin(), process.reader.unread().end());
    for (const auto tid : tids) {
      const auto found = stacks.find(tid);
      const auto& thread = process.threads[tid];
      const bool patient = thread.unassigned < kMostPeriods * options_.period;
      const bool at_work = thread.working && !has_waited(pid, tid, thread);
      if (std::ranges::find(unread, tid) == unread.end() && (at_work || !patient)) {
        add_stack(pid, process, tid, found == stacks.end() ? nullptr : &found->second, at_work,
                  held.contains(tid));
      }
    }
    tids = std::exchange(unread, {});
  }
  lost_ += tids.size();
}

void ReadingSource::add_stack(base::Pid pid, Process& process, Tid tid,
                              const python::ThreadStack* stack, bool at_work, bool held_before) {
  auto& thread = process.threads[tid];
  const auto count = thread.unassigned / options_.period;
  thread.unassigned %= options_.period;
  if (!at_work && thread.at_work) {
    receiver_(*thread.at_work, static_cast<std::uint64_t>(count), false);
    return;
  }
  sample::Stack one{.pid = static_cast<std::uint32_t>(pid.value()),
                    .tid = static_cast<std::uint32_t>(tid.value())};
  if (stack != nullptr) {
    one.truncated = !stack->complete;
    one.frames = process.frames.of(*stack, process.reader, functions_);
  }
  if (options_.gil && stack != nullptr) {
    one.gil = held_before && holds_gil(process, tid) ? sample::Gil::kHeld : sample::Gil::kNone;
  }
  if (at_work) {
    thread.at_work = std::make_shared<const sample::Stack>(one);
  }
  receiver_(one, static_cast<std::uint64_t>(count), false);
}

}  // namespace

std::unique_ptr<StackSource> make_reading_source(const SourceOptions& options,
                                                 StackReceiver receiver) {
  return std::make_unique<ReadingSource>(options, std::move(receiver));
}

}  // namespace pyinject::live
