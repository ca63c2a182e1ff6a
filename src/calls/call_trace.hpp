// The result of `record --functions`: calls and returns of Python functions, in order.
//
// CPython 3.15 fires its entry probe at every call and whenever a generator or coroutine resumes,
// and its return probe at every return, every yield or await that waits, and every exception that
// leaves a function. There are exceptions: creating a generator or coroutine object fires an entry
// without a return (and another entry when it starts to run). throw() into one fires a return
// without an entry, and so does close() if the generator handles it. Observed on 3.15.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::calls {

// As named by the interpreter: the name without its class, the file as given.
struct Function {
  std::string name;
  std::string file;
  std::int32_t line = 0;  // first line, set by pair_calls(); 0 and below: unknown
  bool operator==(const Function&) const = default;
};

struct CallEvent {
  enum class Kind : std::uint8_t { kEntry, kReturn, kThread };  // kThread: TID starts or exits
  static constexpr std::uint32_t kNone = ~0U;

  std::uint64_t time = 0;  // nanoseconds
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t function = 0;  // in CallTrace::functions
  std::int32_t line = 0;       // line at entry or return
  // In CallTrace::events: the return of this entry, or the entry of this return; set by
  // pair_calls().
  std::uint32_t partner = kNone;
  std::uint16_t source = 0;  // the file that has the probe
  Kind kind = Kind::kEntry;
};

struct CallTrace {
  std::vector<Function> functions;
  std::vector<CallEvent> events;  // by time
  std::uint64_t lost = 0;         // records dropped by the kernel; read_calls() says which
  std::uint64_t unreadable = 0;   // invalid samples
  std::string damage;             // of the file; empty: none
};

// Drops the second of two consecutive events for the same call. Two paths can refer to the same
// file (the layers of two containers), each with its own event. Also, perf may write a record twice
// (docs/perf-notes.md, "Recording"): same thread, same nanosecond.
void drop_repeated(CallTrace& trace);

// Pairs each return with the latest unpaired entry of the same function in its thread. Entries
// after that one have no return. Splits functions with the same name in a file by the lines at
// which they are entered.
void pair_calls(CallTrace& trace);

// False: built without libtraceevent, cannot read such files.
[[nodiscard]] bool can_read_calls();

// All of the above. Counts as lost only calls and returns if perf reports losses per event (6.1 and
// later) or nothing else was recorded. Throws base::Error if PATH is unreadable or has no function
// calls.
[[nodiscard]] CallTrace read_calls(const std::string& path);

}  // namespace pyinject::calls
