// Reads Python stacks at the exact time of perf's samples, with a BPF program. Nothing in the
// target is run, written or stopped.
#pragma once

#include "base/budget.hpp"
#include "pyinject/base/pid.hpp"
#include "python/layout/frame_layout.hpp"
#include "sample/stack.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::bpf {

// Why the sampler cannot be used: a name for programs and counters, what was found, and what the
// user can do. All are phrases without a final period.
struct Unavailable {
  // "not_built", "no_btf", "no_rights", "lockdown", "no_memory", "no_descriptors", "kernel_too_old"
  std::string name;
  std::string found;
  std::string remedy;
};
// For a message: what was found, its name, and what the user can do.
[[nodiscard]] std::string phrase(const Unavailable& why);

class NativeTables;

// Whether this build includes the sampler.
[[nodiscard]] bool built_in();

struct Moment {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t waker = 0;  // thread that has released the futex that it waited for; 0: none known
  std::uint64_t time = 0;   // CLOCK_MONOTONIC, nanoseconds
};

struct Counters {
  std::uint64_t samples = 0;         // of added processes
  std::uint64_t state_found = 0;     // the thread state was at its last known address
  std::uint64_t state_searched = 0;  // it was found in the interpreter's list
  std::uint64_t truncated = 0;
  std::uint64_t unreadable = 0;
  std::uint64_t gil_held = 0;
  std::uint64_t gil_waited_for = 0;
  std::uint64_t lost = 0;        // stacks dropped because the ring was full
  std::uint64_t lost_names = 0;  // dropped because the ring was full, or unreadable
  std::uint64_t by_clock = 0;
  std::uint64_t traced = 0;  // at tracepoints and probes, whether perf made a sample or not
  std::uint64_t births = 0;  // threads and processes that known processes have started
};

// Losses of a process that had too many new names.
struct LostNames {
  std::uint32_t pid = 0;
  std::uint64_t frames = 0;  // without names
};

struct SamplerOptions {
  bool gil = false;
  bool tasks = false;
  bool wakeups = false;   // also report when threads of added processes may run again
  bool polls = false;     // also report when they call epoll_wait(2) or the like
  bool native = false;    // also read the native stacks of processes that native_tables() knows
  bool by_clock = false;  // for tests: behave as on kernels before 6.3
};

// What perf's file tells of its events.
struct EventsOfPerf {
  std::vector<std::uint64_t> without_stacks = {};  // ids of events that need no program; sorted
  std::map<std::uint64_t, std::uint64_t> tracepoints = {};  // and probes: their numbers, by id
  bool only_tracepoints = false;                            // no other event samples
  base::Pid recorded{0};  // a process that perf records; 0: the whole system
};

// Called by consume(). A code object is reported before the first stack that contains it.
struct Receiver {
  std::function<void(sample::Code)> code;
  std::function<void(sample::Stack)> stack;
  // The end of a wait: from now on the thread waits for a CPU. If there is a waker, a stack of it
  // comes first, TRACED and with the same TIME.
  std::function<void(Moment)> wakeup = {};
  std::function<void(Moment)> poll = {};
};

// The program lives as long as this object and the events that it is attached to: if this tool is
// killed, the program is removed when perf exits. Not thread-safe unless noted.
class Sampler {
 public:
  // Loads the program. Memory for names is charged to BUDGET's bytes and to the process, which gets
  // no further names once it has reached its limit. Needs CAP_BPF and CAP_PERFMON, Linux 5.17 with
  // BTF.
  [[nodiscard]] static std::variant<std::unique_ptr<Sampler>, Unavailable> open(
      const SamplerOptions& options, Receiver receiver,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>());

  virtual ~Sampler() = default;
  Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // From now on samples of PID and of children that it forks have stacks: until it exits or execs,
  // or is removed. Thread-safe.
  enum class Added {
    kYes,
    kUnfit,  // its frames or code objects exceed what the program reads of them
    kFull,   // the limit of 16384 processes is reached
  };
  [[nodiscard]] virtual Added add(base::Pid pid, const python::FrameLayout& layout) = 0;
  virtual void remove(base::Pid pid) = 0;
  // Checks whether processes that had not loaded asyncio or greenlet when added have loaded it
  // since. Call it once a second, a few times a second if tasks are requested.
  virtual void look_for_modules() = 0;
  // nullptr: not requested.
  [[nodiscard]] virtual NativeTables* native_tables() = 0;
  // For events of the whole system: the kernel drops samples of all processes except PIDS and what
  // they fork from now on; it never drops those of tracepoints and probes. May be called again with
  // more pids.
  virtual void record_only(std::span<const base::Pid> pids) = 0;

  struct Attached {
    std::size_t events = 0;   // events that run the program now
    std::size_t traced = 0;   // of these: of tracepoints and probes
    std::size_t refused = 0;  // events that accept no such program
    std::string why;          // for the last event refused, or for a failure; empty: none
    bool taken = false;       // by join(): an event already has a program
  };
  // Attaches to all open events of PERF, which must own them, except those without stacks; needs
  // permission to ptrace it. Threads that inherit such an event later also run the program. For a
  // tracepoint or a probe, it runs by an event of this process, until leave(): that of PERF would
  // lose it when a thread that has inherited it exits (docs/kernel-notes.md).
  [[nodiscard]] virtual Attached attach(base::Pid perf, const EventsOfPerf& events) = 0;
  // The same for running events, until leave() or the exit of this tool; changes nothing if one of
  // them already has a program. Copies inherited earlier never run the program; copies inherited in
  // the meantime keep it.
  [[nodiscard]] virtual Attached join(base::Pid perf, const EventsOfPerf& events) = 0;
  virtual void leave() = 0;
  // The kernel does not pass a sample's timestamp to the program: the recording needs -k mono.
  [[nodiscard]] virtual bool by_clock() const = 0;

  // Readable when much data is pending; call consume() a few times a second anyway.
  [[nodiscard]] virtual int fd() const = 0;
  // Passes pending records to the receiver, limited per call: returns true if there are more.
  // Terminates even if records arrive faster than they are handled.
  virtual bool consume() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  [[nodiscard]] virtual std::vector<LostNames> lost_names() const = 0;
};

}  // namespace pyinject::bpf
