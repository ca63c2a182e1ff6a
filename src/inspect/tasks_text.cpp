#include "inspect/tasks_text.hpp"

#include "base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace pyinject::inspect {

namespace {

using base::printable;

std::string shown_length(std::chrono::nanoseconds length) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>{length}.count());
}

// Tasks below those that await them.
class TaskTree {
 public:
  TaskTree(const ProcessSnapshot& process, bool all) : process_{process}, all_{all} {
    for (const auto& task : process.tasks) {
      by_address_.emplace(task.address, &task);
    }
    for (const auto& task : process.tasks) {
      for (const auto awaiter : task.awaited_by) {
        awaited_[awaiter].push_back(&task);
      }
    }
  }

  // Those of LOOP.
  std::string to_string(std::uint64_t loop) {
    for (const auto& task : process_.tasks) {
      const bool root = std::ranges::none_of(
          task.awaited_by, [this](std::uint64_t awaiter) { return by_address_.contains(awaiter); });
      if (root && task.loop == loop) {
        add(task, 0);
      }
    }
    std::size_t left = 0;
    for (const auto& task : process_.tasks) {
      if (task.loop == loop) {
        add(task, 0);  // unless it is shown: tasks that await each other have no root
        left += shown_.contains(task.address) ? 0U : 1U;
      }
    }
    if (left != 0) {
      text_ += fmt::format("    ... {} (-v or --json: all)\n", base::counted(left, "more task"));
    }
    return std::exchange(text_, {});
  }

 private:
  static constexpr std::size_t kMostShown = 100;
  static constexpr std::size_t kDeepest = 32;

  void add(const python::AsyncTask& task, std::size_t depth) {
    if (shown_.contains(task.address) || (!all_ && shown_.size() >= kMostShown)) {
      return;
    }
    shown_.insert(task.address);
    const std::string indent(4 + 2 * std::min(depth, kDeepest), ' ');
    text_ += fmt::format("{}task \"{}\": {}{}{}{}\n", indent, printable(task.name),
                         python::name(task.state), same_await(task), awaiters(task),
                         task.certain    ? ""
                         : process_.core ? " (not all of it can be read)"
                                         : " (changed while it was read)");
    for (const auto& frame : task.awaits) {
      text_ += fmt::format("{}  {}  {}:{}\n", indent, printable(frame.names.qualname),
                           printable(frame.names.file),
                           frame.line == 0 ? std::string{"?"} : std::to_string(frame.line));
    }
    if (const auto below = awaited_.find(task.address); below != awaited_.end()) {
      for (const auto* const each : below->second) {
        add(*each, depth + 1);
      }
    }
  }

  [[nodiscard]] std::string same_await(const python::AsyncTask& task) const {
    const auto found = process_.same_await.find(task.address);
    return found == process_.same_await.end()
               ? ""
               : fmt::format(", seen in the same await for {}", shown_length(found->second));
  }

  // The position in the tree shows a single one.
  [[nodiscard]] std::string awaiters(const python::AsyncTask& task) const {
    std::vector<std::string> names;
    for (const auto address : task.awaited_by) {
      if (const auto found = by_address_.find(address); found != by_address_.end()) {
        names.push_back(fmt::format("\"{}\"", printable(found->second->name)));
      }
    }
    return names.empty() ? "" : fmt::format(", awaited by {}", fmt::join(names, ", "));
  }

  const ProcessSnapshot& process_;
  bool all_;
  std::map<std::uint64_t, const python::AsyncTask*> by_address_;
  std::map<std::uint64_t, std::vector<const python::AsyncTask*>> awaited_;
  std::set<std::uint64_t> shown_;
  std::string text_;
};

// Of the tasks of a loop, the one that is seen in the same await for the longest; empty: not known,
// or several.
std::string longest_wait(const ProcessSnapshot& process,
                         const std::vector<const python::AsyncTask*>& tasks) {
  const python::AsyncTask* longest = nullptr;
  std::chrono::nanoseconds most{};
  for (const auto* const task : tasks) {
    const auto found = process.same_await.find(task->address);
    if (found != process.same_await.end() && found->second >= most) {
      longest = found->second > most ? task : nullptr;
      most = found->second;
    }
  }
  return longest == nullptr ? ""
                            : fmt::format("; \"{}\" is seen in the same await for the longest, {}",
                                          printable(longest->name), shown_length(most));
}

}  // namespace

std::string tasks_text(const ProcessSnapshot& process, bool all) {
  std::map<std::uint64_t, std::vector<const python::AsyncTask*>> loops;
  for (const auto& task : process.tasks) {
    loops[task.loop].push_back(&task);
  }
  std::string text;
  TaskTree tree{process, all};
  for (const auto& [loop, tasks] : loops) {
    const auto thread = tasks.front()->thread;
    text += fmt::format("  asyncio, {}: {}{}\n",
                        thread ? fmt::format("loop of thread {}", thread->value())
                               : fmt::format("loop 0x{:x}", loop),
                        base::counted(tasks.size(), "task"), longest_wait(process, tasks));
    text += tree.to_string(loop);
  }
  return text;
}

}  // namespace pyinject::inspect
