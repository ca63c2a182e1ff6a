#include "why/event_loop.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace pyinject::why {

namespace {

enum class Where { kNoLoop, kLoop, kCallback };

// Below this function there is nothing but the loop, or a callback: trio's tasks, and all that
// asyncio runs by a loop without Python functions, such as uvloop's.
bool is_bottom(std::string_view function, std::string_view file) {
  return (function == "unrolled_run" && is_of_trio(file)) ||
         (function == "Runner.run" && file.ends_with("asyncio/runners.py"));
}

Where where(const Recording& recording, std::uint32_t stack) {
  auto found = Where::kNoLoop;
  bool callback = false;
  for (const auto& line : recording.stacks.lines(stack)) {
    const auto& function = recording.names.text(line.function);
    const std::string_view file = recording.names.text(line.file);
    if (function == "Handle._run" && file.ends_with("asyncio/events.py")) {
      return Where::kCallback;
    }
    if (function == "BaseEventLoop._run_once" && file.ends_with("asyncio/base_events.py")) {
      found = Where::kLoop;
    }
    if (found == Where::kNoLoop && is_bottom(function, file)) {
      return callback ? Where::kCallback : Where::kLoop;
    }
    callback = callback || (file.find("/asyncio/") == std::string_view::npos && !is_of_trio(file));
  }
  return found;
}

bool is_line_of_hub(const Recording& recording, const Line& line) {
  return is_hub(recording.names.text(line.function), recording.names.text(line.file));
}

// In a thread that has a hub. What greenlets and the hub's callbacks do keeps the loop from
// running; it runs where nothing but gevent is on the hub's stack.
Where where_beside_hub(const Recording& recording, std::uint32_t stack) {
  const auto& lines = recording.stacks.lines(stack);
  const auto hub = std::ranges::find_if(
      lines, [&](const Line& line) { return is_line_of_hub(recording, line); });
  const bool polls = std::all_of(lines.begin(), hub, [&](const Line& line) {
    return recording.names.text(line.file).find("/gevent/") != std::string::npos;
  });
  return lines.empty()                 ? Where::kNoLoop
         : hub != lines.end() && polls ? Where::kLoop
                                       : Where::kCallback;
}

// A poll, a sample or a wait, in order of time.
struct Mark {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t stack = 0;
  std::uint64_t time = 0;  // that it stands for
  bool poll = false;
};

std::vector<Mark> marks_of(const Accounts& accounts, std::uint32_t tid) {
  std::vector<Mark> marks;
  for (const auto& sample : of_thread(accounts.samples, tid)) {
    marks.push_back({.begin = sample.time,
                     .end = sample.time,
                     .stack = sample.stack,
                     .time = static_cast<std::uint64_t>(sample.weight)});
  }
  for (const auto& poll : of_thread(accounts.polls, tid)) {
    marks.push_back({.begin = poll.time, .end = poll.time, .poll = true});
  }
  for (const auto& wait : of_thread(accounts.waits, tid)) {
    marks.push_back(
        {.begin = wait.begin, .end = wait.end, .stack = wait.stack, .time = wait.length()});
  }
  std::ranges::sort(marks, {}, &Mark::begin);
  return marks;
}

// Whether thread TID has a hub: a snapshot or one of MARKS shows it.
bool has_hub(const Recording& recording, std::uint32_t tid, const std::vector<Mark>& marks) {
  const auto facts = recording.threads.find(tid);
  return (facts != recording.threads.end() && facts->second.hub) ||
         std::ranges::any_of(marks, [&](const Mark& mark) {
           return std::ranges::any_of(recording.stacks.lines(mark.stack), [&](const Line& line) {
             return is_line_of_hub(recording, line);
           });
         });
}

}  // namespace

bool is_of_trio(std::string_view file) {
  return file.find("/trio/_core/") != std::string_view::npos;
}

bool is_hub(std::string_view function, std::string_view file) {
  return function == "Hub.run" && file.ends_with("gevent/hub.py");
}

std::vector<LoopBlock> loop_blocks(const Recording& recording, const Accounts& accounts,
                                   std::uint64_t shortest) {
  std::vector<LoopBlock> blocks;
  for (const auto& [tid, account] : accounts.threads) {
    const auto marks = marks_of(accounts, tid);
    const bool hub = has_hub(recording, tid, marks);
    std::unordered_map<std::uint32_t, Where> known;
    LoopBlock block{.tid = tid, .hub = hub};
    const auto close = [&, tid = tid] {
      if (block.length() >= shortest && !block.spent.empty()) {
        blocks.push_back(block);
      }
      block = {.tid = tid, .hub = hub};
    };
    for (const auto& mark : marks) {
      auto [at, fresh] = known.try_emplace(mark.stack, Where::kNoLoop);
      if (fresh) {
        at->second = hub ? where_beside_hub(recording, mark.stack) : where(recording, mark.stack);
      }
      // Without polls, only a single wait is sure to be in one round of the loop.
      if (mark.poll || at->second != Where::kCallback || !recording.polls) {
        close();
      }
      if (mark.poll || at->second != Where::kCallback) {
        continue;
      }
      if (block.spent.empty()) {
        block.begin = mark.begin;
      }
      block.end = std::max(block.end, mark.end);
      block.spent[mark.stack] += mark.time;
    }
    close();
  }
  return blocks;
}

}  // namespace pyinject::why
