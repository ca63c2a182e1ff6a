// What `record --functions` has recorded: calls and returns of Python functions, in their order.
//
// CPython 3.15 passes its probe of entries at every call, and whenever a generator or coroutine
// goes on; that of returns at every return, every yield or await that waits, and every exception
// that leaves a function. Two things are entered without a return of their own: making a generator
// or coroutine object (its function is "entered" then, and once more when it begins to run). And
// throw() into one is a return without an entry, as is close() of one that handles it. Seen on
// 3.15.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::calls {

// As the interpreter names it: the name without that of its class, and the file as it was given.
struct Function {
  std::string name;
  std::string file;
  std::int32_t line = 0;  // where it begins, by pair_calls(); 0 and below: not known
  bool operator==(const Function&) const = default;
};

struct CallEvent {
  enum class Kind : std::uint8_t { kEntry, kReturn, kThread };  // kThread: TID begins or ends
  static constexpr std::uint32_t kNone = ~0U;

  std::uint64_t time = 0;  // nanoseconds
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t function = 0;  // in CallTrace::functions
  std::int32_t line = 0;       // where it is entered or left
  // In CallTrace::events: the return of this entry, the entry of this return; set by pair_calls().
  std::uint32_t partner = kNone;
  std::uint16_t source = 0;  // the file that has the probe
  Kind kind = Kind::kEntry;
};

struct CallTrace {
  std::vector<Function> functions;
  std::vector<CallEvent> events;  // by time
  std::uint64_t lost = 0;        // records that the kernel had no room for; read_calls() says which
  std::uint64_t unreadable = 0;  // samples that cannot be understood
  std::string damage;            // of the file; empty: none
};

// Drops the second of two events of one call, which follow each other. Two names can lead to one
// file (the layers of two containers), and then each has its event. And perf may write a record
// twice (docs/perf-notes.md, "Recording"): same thread, same nanosecond.
void drop_repeated(CallTrace& trace);

// Finds which return belongs to which entry: to the last one of that function in its thread that
// has none yet. What was entered above that has none of its own. Splits functions of the same name
// in one file, by the lines where they are entered.
void pair_calls(CallTrace& trace);

// False: this program was built without libtraceevent, and can read no such file.
[[nodiscard]] bool can_read_calls();

// All of the above. What was lost is of calls and returns alone where perf tells (6.1 and later),
// or nothing else was recorded. Throws base::Error when PATH cannot be read, or has no calls of
// functions in it.
[[nodiscard]] CallTrace read_calls(const std::string& path);

}  // namespace pyinject::calls
