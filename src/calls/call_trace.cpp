#include "calls/call_trace.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace pyinject::calls {

namespace {

using Kind = CallEvent::Kind;

// The calls of one thread that have not returned yet.
struct OpenCalls {
  struct Call {
    std::uint32_t event = 0;  // the entry
    std::uint32_t function = 0;
  };
  std::vector<Call> stack;
  std::unordered_map<std::uint32_t, std::size_t> depth;  // number of calls of FUNCTION in STACK

  void push(Call call) {
    ++depth[call.function];
    stack.push_back(call);
  }
  Call pop() {
    const Call call = stack.back();
    stack.pop_back();
    --depth[call.function];
    return call;
  }
  void erase(std::vector<Call>::iterator call) {
    --depth[call->function];
    stack.erase(call);
  }
  [[nodiscard]] bool holds(std::uint32_t function) const {
    const auto found = depth.find(function);
    return found != depth.end() && found->second > 0;
  }
};

// What the entries and returns of each name reveal about its functions.
class Traits {
 public:
  Traits() = default;  // nothing is known

  // From a trace that was paired without any traits.
  explicit Traits(const CallTrace& trace) : of_(trace.functions.size()) {
    std::vector<std::set<std::int32_t>> reached(of_.size());
    for (const auto& event : trace.events) {
      if (event.kind == Kind::kEntry) {
        of_[event.function].beginnings.insert(event.line);
        ++of_[event.function].surplus;
      } else if (event.kind == Kind::kReturn) {
        if (event.partner != CallEvent::kNone && trace.events[event.partner].line != event.line) {
          reached[event.function].insert(event.line);
        }
        --of_[event.function].surplus;
      }
    }
    for (std::size_t i = 0; i < of_.size(); ++i) {
      const auto& name = trace.functions[i].name;
      if (name != "<lambda>") {
        find_generators(of_[i], reached[i]);
      }
      of_[i].plain = of_[i].surplus == 0 && of_[i].generators.empty() && name != "<genexpr>";
    }
  }

  // Certainly no generator or coroutine.
  [[nodiscard]] bool is_plain(std::uint32_t function) const {
    return function < of_.size() && of_[function].plain;
  }

  // Whether ENTRY is the start of what is certainly a generator or coroutine.
  [[nodiscard]] bool begins_generator(const CallEvent& entry) const {
    return entry.function < of_.size() && of_[entry.function].generators.contains(entry.line);
  }

  // First line of the function of EVENT; 0: it started before the recording.
  [[nodiscard]] std::int32_t beginning(const CallEvent& event) const {
    return of_[event.function].beginning(event.line);
  }

 private:
  struct OfOne {
    std::set<std::int32_t> beginnings;  // lines; before find_generators(), all lines of entries
    std::set<std::int32_t> generators;  // those of BEGINNINGS, and 0, that resume elsewhere
    std::int64_t surplus = 0;           // entries minus returns
    bool plain = true;

    [[nodiscard]] std::int32_t beginning(std::int32_t line) const {
      const auto behind = beginnings.upper_bound(line);
      return behind == beginnings.begin() ? 0 : *std::prev(behind);
    }
  };

  // A generator resumes at the line of its yield, which was REACHED from another line and thus is
  // no beginning. A function on a single line keeps its entry line.
  static void find_generators(OfOne& one, const std::set<std::int32_t>& reached) {
    for (const auto line : reached) {
      if (one.beginnings.erase(line) > 0) {
        one.generators.insert(line);
      }
    }
    std::set<std::int32_t> beginnings;
    for (const auto line : one.generators) {
      beginnings.insert(one.beginning(line));
    }
    one.generators = std::move(beginnings);
  }

  std::vector<OfOne> of_;
};

class Pairing {
 public:
  Pairing(std::vector<CallEvent>& events, const Traits& traits)
      : events_{events}, traits_{traits} {}

  void run() {
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      auto& event = events_[i];
      event.partner = CallEvent::kNone;
      switch (event.kind) {
        case Kind::kEntry:
          threads_[event.tid].push({.event = i, .function = event.function});
          break;
        case Kind::kReturn:
          leave(threads_[event.tid], i);
          break;
        case Kind::kThread:
          threads_.erase(event.tid);
          break;
      }
    }
  }

 private:
  // Plain functions do return: below one that has not returned, no generator can have resumed, so
  // the return is that of a throw(), which has no entry.
  [[nodiscard]] bool is_of_throw(const OpenCalls& open, std::uint32_t function) const {
    if (traits_.is_plain(function)) {
      return false;
    }
    for (auto call = open.stack.rbegin(); call->function != function; ++call) {
      if (traits_.is_plain(call->function)) {
        return true;
      }
    }
    return false;
  }

  void leave(OpenCalls& open, std::uint32_t number) {
    auto& event = events_[number];
    if (!open.holds(event.function) || is_of_throw(open, event.function)) {
      return;
    }
    auto call = open.pop();
    while (call.function != event.function) {
      call = open.pop();
    }
    event.partner = call.event;
    events_[call.event].partner = number;
    forget_making(open, events_[call.event]);
  }

  // The generator entered by BEGUN was created earlier, by an entry without a return: if that entry
  // were kept, the return of a throw() would be paired with it.
  void forget_making(OpenCalls& open, const CallEvent& begun) const {
    if (!traits_.begins_generator(begun) || !open.holds(begun.function)) {
      return;
    }
    const auto made =
        std::find_if(open.stack.rbegin(), open.stack.rend(), [&](const OpenCalls::Call& call) {
          return call.function == begun.function && events_[call.event].line == begun.line;
        });
    if (made != open.stack.rend()) {
      open.erase(std::prev(made.base()));
    }
  }

  std::vector<CallEvent>& events_;
  const Traits& traits_;
  std::unordered_map<std::uint32_t, OpenCalls> threads_;
};

void split_functions(CallTrace& trace, const Traits& traits) {
  std::vector<Function> functions;
  std::map<std::pair<std::uint32_t, std::int32_t>, std::uint32_t> numbers;
  const auto number_of = [&](const CallEvent& event) {
    const auto line = traits.beginning(event);
    const auto [found, is_new] =
        numbers.try_emplace({event.function, line}, static_cast<std::uint32_t>(functions.size()));
    if (is_new) {
      functions.push_back(trace.functions[event.function]);
      functions.back().line = line;
    }
    return found->second;
  };
  for (auto& event : trace.events) {
    const bool paired = event.kind == Kind::kReturn && event.partner != CallEvent::kNone;
    if (paired) {  // the entry comes first and already has its number
      event.function = trace.events[event.partner].function;
    } else if (event.kind != Kind::kThread) {
      event.function = number_of(event);
    }
  }
  trace.functions = std::move(functions);
}

}  // namespace

void drop_repeated(CallTrace& trace) {
  std::unordered_map<std::uint32_t, CallEvent> last;  // by thread
  const auto repeated = [&last](const CallEvent& event) {
    if (event.kind == Kind::kThread) {
      last.erase(event.tid);
      return false;
    }
    const auto [found, is_first] = last.try_emplace(event.tid, event);
    const auto before = found->second;
    const bool same_call =
        before.kind == event.kind && before.function == event.function && before.line == event.line;
    if (!is_first && same_call && (before.source != event.source || before.time == event.time)) {
      return true;
    }
    found->second = event;
    return false;
  };
  std::erase_if(trace.events, repeated);
}

void pair_calls(CallTrace& trace) {
  const Traits unknown;
  Pairing{trace.events, unknown}.run();
  const Traits traits{trace};
  Pairing{trace.events, traits}.run();
  split_functions(trace, traits);
}

}  // namespace pyinject::calls
