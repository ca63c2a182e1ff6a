#include "inspect/tasks_text.hpp"

#include "base/text.hpp"
#include "inspect/alike_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
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
  TaskTree(const ProcessSnapshot& process, const FrameText& functions, bool all)
      : process_{process}, functions_{functions}, all_{all} {
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
    std::vector<const python::AsyncTask*> roots;
    for (const auto& task : process_.tasks) {
      const bool root = std::ranges::none_of(
          task.awaited_by, [this](std::uint64_t awaiter) { return by_address_.contains(awaiter); });
      if (root && task.loop == loop) {
        roots.push_back(&task);
      }
    }
    add(roots, 0);
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

  using Tasks = std::vector<const python::AsyncTask*>;

  // Those that wait in the same place, and that no task awaits, together.
  void add(const Tasks& tasks, std::size_t depth) {
    std::vector<Tasks> places;  // in the order of the first of each
    std::map<std::string, std::size_t> numbers;
    std::set<const python::AsyncTask*> seen;
    for (const auto* const task : tasks) {
      if (!seen.insert(task).second) {
        continue;  // a task can await another one twice
      }
      const auto place =
          all_ || awaited_.contains(task->address)
              ? fmt::format("{}", task->address)
              : fmt::format("{}{}{}", base::without_digits(task->name), state_of(*task),
                            without_addresses(awaits_of(*task, "")));
      const auto [number, fresh] = numbers.try_emplace(place, places.size());
      if (fresh) {
        places.emplace_back();
      }
      places[number->second].push_back(task);
    }
    for (const auto& alike : places) {
      if (alike.size() == 1) {
        add(*alike.front(), depth);
      } else {
        add_alike(alike, depth);
      }
    }
  }

  void add(const python::AsyncTask& task, std::size_t depth) {
    if (shown_.contains(task.address) || full()) {
      return;
    }
    shown_.insert(task.address);
    ++rows_;
    text_ += fmt::format("{}task \"{}\": {}\n{}", indent(depth), printable(task.name),
                         state_of(task, same_await({&task})), awaits_of(task, indent(depth)));
    if (const auto below = awaited_.find(task.address); below != awaited_.end()) {
      add(below->second, depth + 1);
    }
  }

  void add_alike(const Tasks& tasks, std::size_t depth) {
    Tasks fresh;
    std::ranges::copy_if(tasks, std::back_inserter(fresh),
                         [this](const auto* task) { return !shown_.contains(task->address); });
    if (fresh.empty() || full()) {
      return;
    }
    for (const auto* const task : fresh) {
      shown_.insert(task->address);
    }
    ++rows_;
    const auto& first = *fresh.front();
    const bool same =
        std::ranges::all_of(fresh, [&](const auto* task) { return task->name == first.name; });
    auto awaits = awaits_of(first, indent(depth));
    for (const auto* const task : fresh) {
      awaits = common_text(awaits, awaits_of(*task, indent(depth)));
    }
    text_ += fmt::format("{}{} \"{}\": {}\n{}", indent(depth), base::counted(fresh.size(), "task"),
                         printable(same ? first.name : base::without_digits(first.name)),
                         state_of(first, same_await(fresh)), awaits);
  }

  [[nodiscard]] bool full() const { return !all_ && rows_ >= kMostShown; }
  static std::string indent(std::size_t depth) {
    std::string blanks(4 + 2 * std::min(depth, kDeepest), ' ');
    return blanks;
  }

  // "pending, awaited by "Task-1"". MORE: behind the state.
  [[nodiscard]] std::string state_of(const python::AsyncTask& task,
                                     const std::string& more = {}) const {
    return fmt::format("{}{}{}{}", python::name(task.state), more, awaiters(task),
                       task.certain    ? ""
                       : process_.core ? " (not all of it can be read)"
                                       : " (changed while it was read)");
  }

  [[nodiscard]] std::string awaits_of(const python::AsyncTask& task,
                                      const std::string& indent) const {
    std::string text;
    for (const auto& frame : task.awaits) {
      text += functions_.lines(frame, indent + "  ");
    }
    return text;
  }

  [[nodiscard]] std::string same_await(const Tasks& tasks) const {
    std::vector<std::chrono::nanoseconds> lengths;
    for (const auto* const task : tasks) {
      if (const auto found = process_.same_await.find(task->address);
          found != process_.same_await.end()) {
        lengths.push_back(found->second);
      }
    }
    if (lengths.empty()) {
      return "";
    }
    const auto [least, most] = std::ranges::minmax(lengths);
    return least == most ? fmt::format(", seen in the same await for {}", shown_length(least))
                         : fmt::format(", seen in the same await for {} to {}", shown_length(least),
                                       shown_length(most));
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
  const FrameText& functions_;
  bool all_;
  std::map<std::uint64_t, const python::AsyncTask*> by_address_;
  std::map<std::uint64_t, std::vector<const python::AsyncTask*>> awaited_;
  std::set<std::uint64_t> shown_;
  std::size_t rows_ = 0;
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

std::string tasks_text(const ProcessSnapshot& process, const FrameText& functions, bool all) {
  std::map<std::uint64_t, std::vector<const python::AsyncTask*>> loops;
  for (const auto& task : process.tasks) {
    loops[task.loop].push_back(&task);
  }
  std::string text;
  TaskTree tree{process, functions, all};
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
