// A snapshot of a process: what each thread does and waits for, and its Python stack. docs/dump.md
// says what is certain and what is not.
//
// For example:
//   const auto snapshot = inspect::take_snapshot(pid, &target);
//   if (snapshot && !snapshot->deadlocks.empty()) {
//     std::cout << snapshot->deadlocks.front().size() << " threads wait for each other\n";
//   }
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/inspect/blocked_in.hpp"
#include "pyinject/python/objects.hpp"
#include "pyinject/python/target.hpp"
#include "pyinject/sample/states.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::inspect {

enum class Activity {
  kOnProcessor,
  kRunnable,           // waits for a processor
  kRunningOrRunnable,  // the kernel does not tell which
  kSleeping,
  kUninterruptible,
  kStopped,  // by a signal
  kTraced,   // stopped by a tracer
  kZombie,
  kOther,
  kUnknown,  // in a core file: it was not blocked in a system call
};
// The stable name: "on_cpu", "runnable", "running_or_runnable", ...
[[nodiscard]] std::string_view name(Activity activity);

// Texts are as the process has them: not made printable.
struct Frame {
  std::string function;  // qualified name; of a C function: its symbol, or empty
  std::string file;
  std::uint32_t line = 0;  // 0: unknown
  // The outermost of the Python functions that one C activation of the evaluator runs.
  bool outermost = false;
  bool native = false;        // a C function
  std::uint64_t address = 0;  // of a C function: where it is, in FILE
  // nullopt: not asked for, not of Python, or they changed while they were read.
  std::optional<python::Locals> locals = {};
  bool operator==(const Frame&) const = default;
};

struct ThreadSnapshot {
  base::Tid tid;
  std::string name;         // the kernel's
  std::string python_name;  // threading.Thread.name; empty: unknown
  Activity activity = Activity::kOther;
  int processor = 0;                  // the one it last ran on; negative: unknown
  std::optional<DescribedCall> call;  // the system call in which it is blocked
  // The kernel functions in which it is blocked, innermost first. Without CAP_SYS_ADMIN only one.
  std::vector<std::string> kernel;
  bool ran_meanwhile = false;  // STATE, CALL and FRAMES may be of different moments
  std::uint64_t switches = 0;  // how often it had left a CPU when it was read

  bool python = false;                     // it has a Python thread state
  std::uint64_t python_id = 0;             // threading.get_ident()
  std::vector<std::int64_t> interpreters;  // ids, ascending; 0: the main one
  sample::Gil gil = sample::Gil::kUnknown;
  base::RemoteAddress gil_address;      // kHeld, kWaitedFor
  std::optional<base::Tid> gil_holder;  // kWaitedFor: nullopt if unknown or free

  std::optional<python::Wait> wait;  // the lock, queue, ... that it waits for

  std::vector<Frame> frames;  // innermost first
  bool settled = true;        // false: inner functions changed while they were read
  bool complete = true;       // false: outer functions are missing; of a core: may be missing
  bool unreadable = false;    // it has Python frames that could not be read
  // Why C functions are missing from FRAMES; empty: none are, or none were asked for.
  std::string native_missing;
  bool shown = true;  // false: show_only() leaves it out of texts and JSON
};

// Where a snapshot of a core file comes from.
struct CoreOrigin {
  std::string file;
  std::uint64_t size = 0;
  std::uint64_t expected_size = 0;  // more than SIZE: it is truncated
  int signal = 0;                   // that ended the process; 0: none
  std::string signal_name;          // "SIGSEGV"
  std::string cause;                // "no memory is mapped at 0x10"; empty: unknown
  std::optional<base::Tid> thread;  // that was given the signal

  [[nodiscard]] bool truncated() const { return size < expected_size; }
};

struct ProcessSnapshot {
  base::Pid pid;
  std::optional<CoreOrigin> core;  // nullopt: of a running process
  std::string user;                // empty: unknown
  std::string command;
  std::optional<python::Version> version;
  std::string version_text;  // with what is special about it
  std::string interpreter;   // its file
  bool stopped = false;      // all threads are stopped by a signal
  // For how long its threads were stopped to take this snapshot; nullopt: they were not.
  std::optional<std::chrono::nanoseconds> stopped_for;
  bool main_thread_exited = false;
  std::string no_stacks;  // why there are no Python stacks; empty: there are
  std::vector<ThreadSnapshot> threads;
  // Threads that wait for each other, each for the next one, and the last one for the first.
  std::vector<std::vector<base::Tid>> deadlocks;
  std::vector<python::AsyncTask> tasks;  // of asyncio
  bool all_tasks = true;                 // false: some could not be read
  std::vector<python::SuspendedGreenlet> greenlets;
  bool all_greenlets = true;  // false: there may be more
  bool has_locals = false;    // the variables of functions were asked for
  std::string no_locals;      // why they cannot be read; empty: they can
  // For how long tasks, by address, have been seen in the same await; only with a TaskHistory.
  std::map<std::uint64_t, std::chrono::nanoseconds> same_await;
};

// kOften: for a reader that takes many a second. It neither waits for threads that are awake for a
// moment, because they may want the GIL, nor looks for greenlets.
enum class Pace { kOnce, kOften };

struct SnapshotOptions {
  Pace pace = Pace::kOnce;
  bool locals = false;  // also the variables of functions: data of the process
};

// Reads without a stop. TARGET: nullptr if its Python stacks cannot be read. nullopt: the process
// has exited. Throws base::Error if this tool itself is broken.
[[nodiscard]] std::optional<ProcessSnapshot> take_snapshot(base::Pid pid,
                                                           const python::Target* target,
                                                           const SnapshotOptions& options = {});

// Leaves all threads but TIDS out of texts and JSON, with the tasks and greenlets of others.
// Returns those of TIDS that the process has.
std::set<base::Tid> show_only(ProcessSnapshot& process, const std::set<base::Tid>& tids);

}  // namespace pyinject::inspect
