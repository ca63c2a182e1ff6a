// What a recording shows, ready to be printed. Pure.
#pragma once

#include "why/accounting.hpp"
#include "why/blame.hpp"
#include "why/event_loop.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::why {

// Part of the time of one use.
struct Spent {
  std::string function = {};  // empty: no Python function
  std::string file = {};
  std::uint32_t line = 0;
  std::string detail =
      {};  // the system call, the kernel function, the C function or its file; may be empty
  std::uint64_t time = 0;
};

struct UseOfGroup {
  Use use = Use::kUnknown;
  std::uint64_t time = 0;
  std::vector<Spent> top = {};  // the three longest
};

// Threads whose names differ only in digits.
struct Group {
  std::string name = {};  // "worker-*"
  std::vector<std::uint32_t> tids = {};
  std::uint64_t wall = 0;
  std::uint64_t busy = 0;             // without idle uses
  std::vector<UseOfGroup> uses = {};  // the longest first
  std::uint64_t major_faults = 0;
  std::uint64_t for_cpu = 0;  // runnable, but without a CPU, by the kernel's count
};

struct Holder {
  std::string object = {};  // of a lock; empty: unknown, or the GIL
  std::uint32_t tid = 0;    // 0: not known
  std::string thread = {};
  Spent held;               // where it was
  bool released = false;    // HELD is where it released the lock
  std::string waiter = {};  // a group
  Spent waited;
  std::uint64_t time = 0;
};

struct Unusual {
  std::string name = {};  // stable
  std::string text = {};
  std::string next = {};  // a command; may be empty
};

// One of several processes from which the command line lets the tool choose.
struct Considered {
  int pid = 0;
  std::string command = {};
  double cpu = 0;  // share of one CPU before the recording
};

struct Report {
  int pid = 0;
  std::string command = {};
  std::string version = {};
  std::uint64_t length = 0;  // nanoseconds
  // Why the process is not faster: UseFacts::cause, or "nothing" (its threads wait for work),
  // "exited", "executed" (another program), "stopped" (by a signal, a debugger or its cgroup),
  // "deadlock", "event_loop".
  std::string_view cause = "nothing";
  std::string verdict = {};        // the first line
  std::string next = {};           // a command
  std::vector<Group> groups = {};  // the busiest first
  std::vector<Holder> gil = {};    // the longest first
  std::vector<Holder> locks = {};  // the same
  std::vector<Unusual> unusual = {};
  procfs::DescendantsUsage descendants = {};              // as in Recording
  std::vector<python::SuspendedGreenlet> greenlets = {};  // at the end
  bool all_greenlets = true;                              // false: there may be more
  std::uint64_t samples = 0;
  std::uint64_t switches = 0;
  std::uint64_t snapshots = 0;
  perfdata::StackCounts kinds = {};  // of the stacks of the samples
  std::uint64_t lost = 0;
  std::vector<Considered> considered = {};  // the busiest first; empty: it was named alone

  // Adds to UNUSUAL.
  void note(std::string name, std::string text, std::string next_command) {
    unusual.push_back(
        {.name = std::move(name), .text = std::move(text), .next = std::move(next_command)});
  }
};

// ACCOUNTS: of RECORDING.
[[nodiscard]] Report make_report(Recording& recording, const Accounts& accounts);

// "0.35", "1.9", "128".
[[nodiscard]] std::string short_number(double value);
[[nodiscard]] inline double share(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}
[[nodiscard]] inline double seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1e9;
}

}  // namespace pyinject::why
