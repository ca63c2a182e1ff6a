#include "pyinject/calls/call_trace.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace pyinject::calls {

namespace {

using Kind = CallEvent::Kind;

// Who has called whom in one thread, as far as it has not returned.
struct OpenCalls {
  struct Call {
    std::uint32_t event = 0;  // the entry
    std::uint32_t function = 0;
    bool inherited = false;  // entered before this process was forked: its return is the parent's
  };
  std::vector<Call> stack;
  std::unordered_map<std::uint32_t, std::size_t> depth;  // how often FUNCTION is in it

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
  [[nodiscard]] bool holds(std::uint32_t function) const {
    const auto found = depth.find(function);
    return found != depth.end() && found->second > 0;
  }
};

// What the entries and returns of each name say of the functions behind it.
class Traits {
 public:
  explicit Traits(const CallTrace& trace) : of_(trace.functions.size()) {
    std::vector<std::set<std::int32_t>> left(of_.size());
    for (const auto& event : trace.events) {
      if (event.kind == Kind::kEntry) {
        of_[event.function].entered.insert(event.line);
        ++of_[event.function].surplus;
      } else if (event.kind == Kind::kReturn) {
        left[event.function].insert(event.line);
        --of_[event.function].surplus;
      }
    }
    for (std::size_t i = 0; i < of_.size(); ++i) {
      find_beginnings(of_[i], left[i]);
      of_[i].plain &= of_[i].surplus == 0 && trace.functions[i].name != "<genexpr>";
    }
  }

  // Surely no generator or coroutine.
  [[nodiscard]] bool is_plain(std::uint32_t function) const { return of_[function].plain; }

  // The line where the function of EVENT begins.
  [[nodiscard]] std::int32_t beginning(const CallEvent& event) const {
    const auto& lines = of_[event.function].entered;
    const auto behind = lines.upper_bound(event.line);
    if (behind == lines.begin()) {
      return lines.empty() ? 0 : *lines.begin();
    }
    return *std::prev(behind);
  }

 private:
  struct OfOne {
    std::set<std::int32_t> entered;  // lines; what is left in the end are beginnings
    std::int64_t surplus = 0;        // of entries over returns
    bool plain = true;
  };

  // A generator goes on in the line of its yield, where it has left: that is no beginning.
  static void find_beginnings(OfOne& one, const std::set<std::int32_t>& left) {
    auto line = one.entered.begin();
    while (line != one.entered.end()) {
      const bool goes_on = line != one.entered.begin() && left.contains(*line);
      line = goes_on ? one.entered.erase(line) : std::next(line);
      one.plain &= !goes_on;
    }
  }

  std::vector<OfOne> of_;
};

class Pairing {
 public:
  Pairing(std::vector<CallEvent>& events, const Traits& traits)
      : events_{events}, traits_{traits} {}

  void run() {
    for (std::uint32_t i = 0; i < events_.size(); ++i) {
      const auto& event = events_[i];
      auto& open = threads_[event.tid];
      switch (event.kind) {
        case Kind::kEntry:
          open.push({.event = i, .function = event.function});
          break;
        case Kind::kReturn:
          leave(open, i);
          break;
        case Kind::kFork:
          fork(event);
          break;
      }
    }
  }

 private:
  // Plain functions do return: below one that has not a generator cannot have gone on, so that its
  // return is that of a throw(), which has no entry.
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
    if (!call.inherited) {
      event.partner = call.event;
      events_[call.event].partner = number;
    }
  }

  // A thread's number may have been another's before.
  void fork(const CallEvent& event) {
    OpenCalls child;
    if (const auto parent = threads_.find(event.function); parent != threads_.end()) {
      child = parent->second;
    }
    for (auto& call : child.stack) {
      call.inherited = true;
    }
    threads_[event.tid] = std::move(child);
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
    if (paired) {  // the entry comes first and has its number already
      event.function = trace.events[event.partner].function;
    } else if (event.kind != Kind::kFork) {
      event.function = number_of(event);
    }
  }
  trace.functions = std::move(functions);
}

}  // namespace

void drop_repeated(CallTrace& trace) {
  std::unordered_map<std::uint32_t, CallEvent> last;  // by thread
  const auto repeated = [&last](const CallEvent& event) {
    if (event.kind == Kind::kFork) {
      return false;
    }
    const auto [found, is_first] = last.try_emplace(event.tid, event);
    const auto before = found->second;
    if (!is_first && before.source != event.source && before.kind == event.kind &&
        before.function == event.function && before.line == event.line) {
      return true;
    }
    found->second = event;
    return false;
  };
  std::erase_if(trace.events, repeated);
}

void pair_calls(CallTrace& trace) {
  const Traits traits{trace};
  Pairing{trace.events, traits}.run();
  split_functions(trace, traits);
}

}  // namespace pyinject::calls
