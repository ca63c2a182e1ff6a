// What a recording of some seconds knows about the threads of one process. Plain values.
#pragma once

#include "base/numbered.hpp"
#include "bpf/code_files.hpp"
#include "bpf/sampler.hpp"
#include "procfs/cgroup.hpp"
#include "procfs/kernel_work.hpp"
#include "procfs/usage.hpp"
#include "pyinject/perfdata/stack_counts.hpp"
#include "pyinject/sample/states.hpp"
#include "python/objects/object_reader.hpp"
#include "sample/use.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::why {

using procfs::kernel_work;
using sample::Use;

// Texts by number; 0 is the empty text.
class Names {
 public:
  Names() { (void)number(""); }
  std::uint32_t number(std::string_view text) { return texts_.number(std::string{text}); }
  [[nodiscard]] const std::string& text(std::uint32_t number) const { return texts_.at(number); }

 private:
  base::Numbered<std::string> texts_;
};

struct Line {
  std::uint32_t function = 0;  // number of its qualified name; 0: no function
  std::uint32_t file = 0;
  std::uint32_t line = 0;  // 0: unknown
  auto operator<=>(const Line&) const = default;
};
using Lines = std::vector<Line>;  // innermost first

// Python stacks by number; 0 is the empty stack.
class Stacks {
 public:
  Stacks() { (void)number({}); }
  std::uint32_t number(Lines lines) { return stacks_.number(std::move(lines)); }
  [[nodiscard]] const Lines& lines(std::uint32_t number) const { return stacks_.at(number); }

 private:
  base::Numbered<Lines, std::map<Lines, std::uint32_t>> stacks_;
};

using bpf::CodeKind;

// Times are of CLOCK_MONOTONIC, in nanoseconds.
struct Event {
  enum class Kind : std::uint8_t {
    kStart,
    kIn,
    kSample,  // on a CPU
    kLeaves,  // a sample just before kOut or kPreempted
    kOut,     // waits from now on
    kWakeup,  // waits for a CPU from now on
    kPoll,    // calls epoll_wait(2) or the like
    kPreempted,
    kExit,
  };
  std::uint64_t time = 0;
  std::uint32_t tid = 0;
  Kind kind = Kind::kIn;
  CodeKind code = CodeKind::kKernel;  // kSample
  Use work = Use::kUnknown;           // kSample in the kernel, kLeaves, by the kernel's functions
  std::uint32_t place = 0;            // a kernel function; in user space, a number of codes
  std::uint32_t waker = 0;            // kWakeup: tid; 0: not a thread of this process
};

struct PythonStack {
  std::uint64_t time = 0;  // of a kSample or kLeaves of the same thread, or of its kWakeup
  std::uint32_t tid = 0;
  std::uint32_t stack = 0;
  sample::Gil gil = sample::Gil::kUnknown;
  sample::Does does = sample::Does::kUnknown;
  perfdata::StackKind kind = perfdata::StackKind::kComplete;
  bool collects = false;  // runs the garbage collector
  bool imports = false;   // runs an import: a function of importlib._bootstrap is in the stack
};

// What a blocked thread waits for, as seen without stopping it.
struct Sighting {
  enum class Object : std::uint8_t {
    kNone,
    kLock,    // Lock, RLock, Semaphore
    kThread,  // what another thread does next: queue, event, condition, future, join
  };
  std::uint64_t time = 0;
  std::uint32_t tid = 0;
  Use work = Use::kUnknown;
  std::uint32_t place = 0;  // a kernel function
  // The peer, the file or the process that the call waits for: "127.0.0.1:5432"; 0: unknown.
  std::uint32_t awaited = 0;
  bool connected = false;  // the call waits for one connected socket
  bool unnamed = false;    // the call waits for a local socket without a name
  bool by_client = false;  // the peer of the socket has connected to this process
  sample::Gil gil = sample::Gil::kUnknown;
  Object object = Object::kNone;
  std::uint32_t object_class = 0;  // "Lock"
  std::uint32_t object_name = 0;   // "Lock 0x7f..."
  std::uint32_t owner = 0;         // tid; 0: unknown
  std::uint32_t owner_stack = 0;
  std::uint32_t stack = 0;
};

// A sample of kFaultPeriod page faults.
struct Fault {
  std::uint64_t time = 0;  // of a PythonStack of the same thread
  std::uint32_t tid = 0;
};

struct ThreadFacts {
  std::string name;  // Thread.name, else the kernel's
  bool hub = false;  // it runs gevent's event loop
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t on_cpu = 0;   // by the kernel's count, in nanoseconds
  std::uint64_t for_cpu = 0;  // runnable, but without a CPU
};

// Says what Recording::cut means.
inline constexpr std::string_view kCutText =
    "more events than fit into memory: the end of the recording is missing";

struct Recording {
  int pid = 0;
  std::string command;
  std::string version;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t period = 0;  // of CPU samples
  Names names;
  Stacks stacks;
  std::vector<std::uint32_t> codes = {};  // C functions, or their files
  std::vector<Event> events;
  std::vector<Fault> faults = {};
  std::vector<PythonStack> python;
  std::vector<PythonStack> wakers;
  std::vector<Sighting> sightings;
  std::map<std::uint32_t, ThreadFacts> threads;  // by tid
  std::set<std::uint32_t> at_begin = {};         // threads
  std::set<std::uint32_t> at_end = {};
  std::vector<std::vector<std::uint32_t>> deadlocks;
  std::uint64_t snapshots = 0;
  std::uint64_t lost = 0;   // samples and switches
  bool polls = false;       // there are events of the kind kPoll
  bool cut = false;         // more events than fit
  bool exited = false;      // before the end
  bool executed = false;    // another program, which is not recorded, before the end
  bool launched = false;    // to be examined until its end
  bool stopped = false;     // at the end, by a signal
  bool traced = false;      // at the end, stopped by a tracer
  std::string frozen = {};  // at the end: by the cgroup with this directory
  // Pending asyncio tasks at the last look, by what they await.
  std::map<Line, std::size_t> awaited = {};
  // At the end.
  std::vector<python::SuspendedGreenlet> greenlets = {};
  bool all_greenlets = true;                       // false: there may be more
  std::map<Line, std::size_t> switched_away = {};  // where they are, but for gevent's hubs
  std::vector<std::uint64_t> resident_kb = {};     // at each snapshot
  bool kernel_names = false;                       // the kernel's functions have names
  double stolen = 0;                               // share of the machine's CPU time
  double busy_cpus = 0;                            // of the machine, by the kernel's count
  procfs::DescendantsUsage descendants = {};       // at the end, with their time on a CPU meanwhile
  std::size_t workers = 0;       // of these, at the end, that run the same executable as it
  std::uint64_t swapped_kb = 0;  // at the end
  // The cgroup that took CPUs away for longest during the recording.
  std::optional<procfs::CpuLimit> cpu_limit = {};
  std::map<std::string, std::size_t> servers = {};  // at the end: connections to others, by address
  // CpuUsers::times() of the end.
  std::map<std::string, std::uint64_t> others = {};
};

// Those of thread TID. ITEMS are in ascending order of it.
template <typename Item>
[[nodiscard]] std::span<const Item> of_thread(const std::vector<Item>& items, std::uint32_t tid) {
  const auto first = std::ranges::lower_bound(items, tid, {}, &Item::tid);
  const auto last = std::ranges::upper_bound(items, tid, {}, &Item::tid);
  return {first, last};
}

}  // namespace pyinject::why
