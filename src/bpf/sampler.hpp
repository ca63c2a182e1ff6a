// Python stacks at the very instant of perf's samples, by a program in the kernel. In the target
// nothing is run, written or stopped.
#pragma once

#include "base/budget.hpp"
#include "pyinject/base/pid.hpp"
#include "python/layout/frame_layout.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::bpf {

// Why it cannot be done here: a name for programs and counters, what was found, and what the user
// can do. All are phrases without a final period.
struct Unavailable {
  // "not_built", "no_btf", "no_rights", "lockdown", "no_memory", "no_descriptors", "kernel_too_old"
  std::string name;
  std::string found;
  std::string remedy;
};

// Whether this build has it at all.
[[nodiscard]] bool built_in();

enum class Gil : std::uint8_t { kUnknown, kNone, kHeld, kWaitedFor };

struct Frame {
  std::uint32_t code = 0;  // Code::number; 0: the kernel had no room to say what it is
  std::uint32_t line = 0;  // 0: not known
  // The outermost of those that share one C activation of the evaluator.
  bool outermost = false;
};

struct Stack {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time = 0;          // of the sample, by the event's clock, in nanoseconds
  bool by_clock = false;           // TIME is CLOCK_MONOTONIC's, at most some microseconds beside it
  std::vector<Frame> frames = {};  // innermost first
  bool truncated = false;          // there are more than 512
  bool unreadable = false;         // the outermost could not be read
  bool python_thread = true;       // false: a thread of C code that CPython does not know
  Gil gil = Gil::kUnknown;         // if asked for
  std::string task = {};           // name of asyncio's task, if asked for; empty: none
};

struct Code {
  std::uint32_t number = 0;  // equal ones of several processes have the same
  std::string qualname;
  std::string file;
  std::uint32_t first_line = 0;  // 0: unknown
};

struct Counters {
  std::uint64_t samples = 0;         // of processes that were added
  std::uint64_t state_found = 0;     // the thread's state was where it had been
  std::uint64_t state_searched = 0;  // it was found in the interpreter's list
  std::uint64_t no_state = 0;        // CPython does not know that thread
  std::uint64_t no_frames = 0;       // it runs no Python
  std::uint64_t truncated = 0;
  std::uint64_t unreadable = 0;
  std::uint64_t gil_held = 0;
  std::uint64_t gil_waited_for = 0;
  std::uint64_t lost = 0;        // stacks: the ring was full
  std::uint64_t lost_names = 0;  // for that, or they cannot be read
  std::uint64_t by_clock = 0;
};

// What a process has lost since it had too much that is new.
struct LostNames {
  std::uint32_t pid = 0;
  std::uint64_t frames = 0;  // without names
};

struct SamplerOptions {
  bool gil = false;
  bool tasks = false;
  bool by_clock = false;  // for tests: as kernels before 6.3 have it
};

// Called by consume(). A code object comes before the first stack with it.
struct Receiver {
  std::function<void(Code)> code;
  std::function<void(Stack)> stack;
};

// The program lives as long as this object and the events that it is attached to: when this tool is
// killed, it goes with perf. Not thread-safe unless noted.
class Sampler {
 public:
  // Loads the program. What is kept of names is charged to BUDGET's bytes, and to the process; one
  // that has used up its share gets no more. Needs CAP_BPF and CAP_PERFMON, Linux 5.17 with BTF.
  [[nodiscard]] static std::variant<std::unique_ptr<Sampler>, Unavailable> open(
      const SamplerOptions& options, Receiver receiver,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>());

  virtual ~Sampler() = default;
  Sampler() = default;
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // From now on PID's samples come with stacks, and those of the children that it forks: until it
  // ends or executes another program, or is removed. Of any thread.
  enum class Added {
    kYes,
    kUnfit,  // its frames or code objects are larger than what the program reads of them
    kFull,   // it knows 16384 processes already
  };
  [[nodiscard]] virtual Added add(base::Pid pid, const python::FrameLayout& layout) = 0;
  virtual void remove(base::Pid pid) = 0;
  // Of processes that had not loaded asyncio when they were added: whether some of them have since.
  // To be called some times a second where tasks are asked for.
  virtual void look_for_tasks() = 0;
  // For events of the whole system: samples of other processes than these, and what they fork from
  // now on, are dropped in the kernel. May be called again, with more.
  virtual void record_only(std::span<const base::Pid> pids) = 0;

  struct Attached {
    std::size_t events = 0;   // that run the program now
    std::size_t refused = 0;  // that take no such program: tracepoints
    std::string why;          // of the last that was refused, or of a failure; empty: none
    bool taken = false;       // by join(): they have a program already
  };
  // To all events that PERF, a perf whose own they are, has open; needs the right to ptrace it.
  // Threads that one of them is inherited by later run the program, too.
  [[nodiscard]] virtual Attached attach(base::Pid perf) = 0;
  // The same for events that run already, until leave() or the end of this tool; nothing is done
  // where one of them has a program. What they were inherited by before runs it never, what they
  // are inherited by meanwhile for good.
  [[nodiscard]] virtual Attached join(base::Pid perf) = 0;
  virtual void leave() = 0;
  // The kernel does not tell the program a sample's time: the recording needs -k mono.
  [[nodiscard]] virtual bool by_clock() const = 0;

  // Readable when much has come; consume() is to be called some times a second even when not.
  [[nodiscard]] virtual int fd() const = 0;
  // Hands what has come to the receiver, or a part of it: true, there is more. So it ends also
  // where records come faster than they are taken.
  virtual bool consume() = 0;
  [[nodiscard]] virtual Counters counters() const = 0;
  [[nodiscard]] virtual std::vector<LostNames> lost_names() const = 0;
};

}  // namespace pyinject::bpf
