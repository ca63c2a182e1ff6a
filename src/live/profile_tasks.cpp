// The rows of asyncio's tasks, and of greenlets.
#include "base/greenlet_name.hpp"
#include "live/profile.hpp"

#include <utility>

namespace pyinject::live {

std::string Profile::greenlet_of(const sample::Stack& stack) const {
  base::GreenletName name;
  if (stack.truncated || stack.unreadable) {
    name.add_unknown();
  }
  for (auto frame = stack.frames.rbegin(); frame != stack.frames.rend() && name.open(); ++frame) {
    if (frame->code == sample::kGarbageCollector) {
      continue;
    }
    const auto known = codes_.find(known_as(*frame).code);
    if (known == codes_.end()) {
      name.add_unknown();
    } else {
      name.add(known->second.code.qualname, known->second.code.file);
    }
  }
  return name.text();
}

std::uint64_t Profile::task_of(const sample::Stack& stack, bool in_greenlet) {
  Task task{.pid = stack.pid, .name = stack.task};
  if (in_greenlet && task.name.empty()) {
    task.name = greenlet_of(stack);
    task.kind = TaskKind::kGreenlet;
  }
  if (task.name.empty()) {
    return 0;
  }
  if (tasks_.size() >= kMostNames && !task_numbers_.contains(task)) {
    forget_tasks();
  }
  const auto [known, inserted] = task_numbers_.try_emplace(task, tasks_.size() + 1);
  if (inserted) {
    tasks_.push_back(std::move(task));
  }
  return known->second;
}

// Each task of a server may have a name of its own.
void Profile::forget_tasks() {
  tasks_.clear();
  task_numbers_.clear();
  entries_[View::kTasks].clear();
  for (auto& [hash, known] : stacks_) {
    known.task = 0;
  }
}

}  // namespace pyinject::live
