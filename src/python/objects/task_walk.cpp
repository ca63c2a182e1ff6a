#include "python/objects/task_walk.hpp"

#include "python/stacks/frame_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace pyinject::python {

namespace {

using base::RemoteAddress;

constexpr auto kTask = "_asyncio.Task";
constexpr auto kFuture = "_asyncio.Future";

}  // namespace

std::optional<RemoteAddress> find_module(const RemoteObjects& objects, RemoteAddress interpreter,
                                         std::string_view name) {
  const auto modules = objects.object_at(interpreter + objects.layout().modules);
  return modules ? objects.item(*modules, name) : std::nullopt;
}

bool TaskWalk::is_task(RemoteAddress object) const {
  const auto size = objects_.instance_size(object);
  return objects_.type_name(object) == kTask ? size == layout_.size
                                             : size >= layout_.size && objects_.is_a(object, kTask);
}

RawTasks TaskWalk::list(const TaskRoots& roots) const {
  auto found = layout_.published ? listed(roots) : registered(roots);
  std::unordered_map<std::uint64_t, std::size_t> places;
  std::vector<RawTask> tasks;
  for (auto& task : found.tasks) {
    const auto [place, added] = places.emplace(task.address.value(), tasks.size());
    if (added) {
      tasks.push_back(std::move(task));
    } else {
      tasks[place->second].current = tasks[place->second].current || task.current;
    }
  }
  found.tasks = std::move(tasks);
  return found;
}

// HEAD: a circular list of struct llist_node {next, prev} (pycore_llist.h).
bool TaskWalk::follow(RemoteAddress head, RemoteAddress thread, RawTasks& into) const {
  constexpr int kAttempts = 4;
  const auto before = into.tasks.size();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    into.tasks.resize(before);
    auto previous = head;
    auto node = objects_.memory().read_pointer(head);
    // A thread state whose list was never used has no pointers.
    while (node && !node->is_null() && *node != head && into.tasks.size() < kMostTasks) {
      std::array<std::uint64_t, 2> links{};
      if (!objects_.memory().read(*node, std::as_writable_bytes(std::span{links})) ||
          links[1] != previous.value()) {
        node.reset();  // the list changed, or is none
        break;
      }
      into.tasks.push_back({.address = *node - layout_.published->node, .thread = thread});
      previous = *node;
      node = RemoteAddress{links[0]};
    }
    if (node && (*node == head || (node->is_null() && previous == head))) {
      return true;
    }
  }
  return false;
}

RawTasks TaskWalk::listed(const TaskRoots& roots) const {
  RawTasks found;
  const auto& at = *layout_.published;
  for (const auto thread : roots.threads) {
    if (const auto running = objects_.object_at(thread + at.running)) {
      found.tasks.push_back({.address = *running, .thread = thread, .current = true});
    }
    found.complete = follow(thread + at.thread_tasks, thread, found) && found.complete;
  }
  // Tasks whose thread has ended.
  found.complete = follow(roots.interpreter + at.interpreter_tasks, {}, found) && found.complete;
  return found;
}

// 3.12 and 3.13: the module's _scheduled_tasks, a WeakSet; _eager_tasks, a set; _current_tasks, a
// dict from loops to tasks.
RawTasks TaskWalk::registered(const TaskRoots& roots) const {
  RawTasks found;
  const auto module = find_module(objects_, roots.interpreter, "_asyncio");
  if (!module) {
    return found;  // asyncio is not loaded
  }
  const auto scheduled = objects_.global(*module, "_scheduled_tasks");
  const auto references = scheduled ? objects_.attribute(*scheduled, "data") : std::nullopt;
  const auto weak = references ? objects_.elements(*references) : std::nullopt;
  const auto eager = objects_.global(*module, "_eager_tasks");
  const auto strong = eager ? objects_.elements(*eager) : std::nullopt;
  const auto running = objects_.global(*module, "_current_tasks");
  const auto current = running ? objects_.items(*running) : std::nullopt;
  found.complete = weak && strong && current;
  for (const auto reference : weak.value_or(std::vector<RemoteAddress>{})) {
    const auto task = objects_.object_at(reference + objects_.layout().referent);
    // None once the task has gone.
    if (task && found.tasks.size() < kMostTasks && !objects_.is_static(*task, "NoneType")) {
      found.tasks.push_back({.address = *task});
    }
  }
  for (const auto task : strong.value_or(std::vector<RemoteAddress>{})) {
    if (found.tasks.size() < kMostTasks) {
      found.tasks.push_back({.address = task});
    }
  }
  for (const auto& item : current.value_or(std::vector<RemoteObjects::Item>{})) {
    if (found.tasks.size() < kMostTasks) {
      found.tasks.push_back({.address = item.value, .current = true});
    }
  }
  return found;
}

TaskWalk::Outcome TaskWalk::read(RawTask& task) const {
  constexpr std::uint32_t kPending = 0;  // enum fut_state
  const auto& memory = objects_.memory();
  if (!is_task(task.address)) {
    return Outcome::kNoTask;
  }
  const auto state = memory.read_value<std::uint32_t>(task.address + layout_.state);
  const auto loop = memory.read_pointer(task.address + layout_.loop);
  const auto coroutine = memory.read_pointer(task.address + layout_.coroutine);
  const auto waits_for = memory.read_pointer(task.address + layout_.waits_for);
  const auto name = objects_.object_at(task.address + layout_.name);
  if (!state || !loop || !coroutine || !waits_for || *state != kPending) {
    return Outcome::kEnded;
  }
  task.loop = *loop;
  task.coroutine = *coroutine;
  task.waits_for = *waits_for;
  if (const auto thread = objects_.attribute(*loop, "_thread_id")) {
    task.loop_thread = objects_.number(*thread).value_or(0);
  }
  if (name) {
    // A number until the program asks for the name.
    const auto number = objects_.number(*name);
    task.name =
        number ? fmt::format("Task-{}", *number) : objects_.text(*name).value_or(std::string{});
  }
  read_awaits(task);
  if (layout_.published) {
    read_awaiters(task);
    return Outcome::kRead;
  }
  // A future can be awaited by further ones: gather() of gather().
  read_callbacks(task.address, task);
  for (std::size_t i = 0; i < task.fulfils.size(); ++i) {
    read_callbacks(task.fulfils[i], task);
  }
  return Outcome::kRead;
}

bool TaskWalk::is_generator(RemoteAddress object) const {
  return objects_.is_static(object, "coroutine") || objects_.is_static(object, "generator") ||
         objects_.is_static(object, "async_generator");
}

// Follows what each of them awaits, up to a future or to an object that is written in C.
void TaskWalk::read_awaits(RawTask& task) const {
  constexpr int kMostWrappers = 8;
  constexpr std::array kWrappers{"coroutine_wrapper", "async_generator_asend",
                                 "async_generator_athrow", "anext_awaitable"};
  auto next = task.coroutine;
  while (!next.is_null()) {
    for (int i = 0; i < kMostWrappers && !next.is_null() && !is_generator(next); ++i) {
      const bool wraps = std::ranges::any_of(
          kWrappers, [&](const char* name) { return objects_.is_static(next, name); });
      next = wraps ? objects_.object_at(next + objects_.layout().wrapped).value_or(RemoteAddress{})
                   : RemoteAddress{};
    }
    const auto found = next.is_null() ? std::nullopt : step(next);
    if (!found) {
      break;
    }
    if (task.awaits.size() == kMostAwaits) {
      task.whole = false;
      break;
    }
    task.awaits.push_back(found->frame);
    next = found->next.value_or(RemoteAddress{});
  }
  std::ranges::reverse(task.awaits);
}

bool TaskWalk::delegates(std::int8_t state, RemoteAddress instruction) const {
  const auto& states = objects_.layout().generator_states;
  if (states.delegates_first) {
    return state >= *states.delegates_first && state <= states.suspended_last;
  }
  // 3.12 (_PyGen_yf): RESUME, or INSTRUMENTED_RESUME, after the saved instruction.
  constexpr std::uint8_t kResume = 151;
  constexpr std::uint8_t kInstrumentedResume = 240;
  constexpr std::uint8_t kAfterYieldFrom = 2;
  const auto code = objects_.memory().read_value<std::array<std::uint8_t, 2>>(instruction + 2);
  return code && ((*code)[0] == kResume || (*code)[0] == kInstrumentedResume) &&
         (*code)[1] >= kAfterYieldFrom;
}

std::optional<TaskWalk::Step> TaskWalk::step(RemoteAddress generator) const {
  const auto& memory = objects_.memory();
  const auto& layout = objects_.layout();
  const auto& stack = objects_.stack();
  const auto& states = layout.generator_states;
  const auto frame = generator + layout.generator_frame;
  const auto state = memory.read_value<std::int8_t>(generator + layout.generator_state);
  const auto code = memory.read_pointer(frame + stack.executable);
  const auto instruction = memory.read_pointer(frame + stack.instruction);
  if (!state || !code || !instruction || *state < states.created ||
      *state > states.suspended_last) {
    return std::nullopt;
  }
  Step found{.frame = {.frame = frame,
                       .code = RemoteAddress{code->value() & ~stack.executable_tags},
                       .instruction = *instruction},
             .next = std::nullopt};
  if (stack.byte_code_index != 0) {
    const auto index = memory.read_value<std::int32_t>(frame + stack.byte_code_index).value_or(0);
    found.frame.instruction =
        in_shared_byte_code(memory, stack, found.frame.code, index, *instruction);
  }
  if (*state == states.created || !delegates(*state, *instruction)) {
    return found;
  }
  // What it waits for is at the end of its evaluation stack.
  auto top = memory.read_pointer(frame + stack.stack_end);
  if (stack.stack_end_is_index) {
    constexpr std::int32_t kMostWords = 1 << 20;
    const auto count = memory.read_value<std::int32_t>(frame + stack.stack_end);
    top = count && *count > 0 && *count < kMostWords
              ? std::optional{frame + (layout.locals +
                                       static_cast<std::uint64_t>(*count) * RemoteObjects::kWord)}
              : std::nullopt;
  }
  const auto awaited =
      top && !top->is_null() ? memory.read_pointer(*top - layout.awaited) : std::nullopt;
  if (awaited && (awaited->value() & ~stack.executable_tags) != 0) {
    found.next = RemoteAddress{awaited->value() & ~stack.executable_tags};
  }
  return found;
}

// A future that awaits the task, such as that of gather(), is not a task: its own awaiters count.
void TaskWalk::read_awaiters(RawTask& task) const {
  const auto& at = *layout_.published;
  const auto flag = [this](RemoteAddress where) {
    return objects_.memory().read_value<std::uint8_t>(where) == std::uint8_t{1};
  };
  std::unordered_set<std::uint64_t> met{task.address.value()};
  std::vector<RemoteAddress> left{task.address};
  while (!left.empty()) {
    const auto future = left.back();
    left.pop_back();
    const auto awaiter = objects_.object_at(future + at.awaited_by);
    if (!awaiter) {
      continue;
    }
    auto awaiters = std::vector{*awaiter};
    if (flag(future + at.awaited_by_is_set)) {
      auto elements = objects_.elements(*awaiter, 8 * kMostAwaiters);
      task.whole = task.whole && elements;
      awaiters = std::move(elements).value_or(std::vector<RemoteAddress>{});
    }
    for (const auto found : awaiters) {
      if (met.size() > kMostAwaiters) {
        task.whole = false;
        return;
      }
      if (!met.insert(found.value()).second) {
        continue;
      }
      if (is_task(found)) {
        task.awaited_by.push_back(found);
      } else if (objects_.is_a(found, kFuture)) {
        left.push_back(found);
      }
    }
  }
}

bool TaskWalk::is_function(RemoteAddress function, std::string_view qualname,
                           std::string_view file) const {
  const auto& stack = objects_.stack();
  const auto code = objects_.is_static(function, "function")
                        ? objects_.object_at(function + objects_.layout().function_code)
                        : std::nullopt;
  const auto name = code ? objects_.object_at(*code + stack.qualified_name) : std::nullopt;
  const auto path = code ? objects_.object_at(*code + stack.file_name) : std::nullopt;
  return name && path && objects_.text(*name) == qualname &&
         objects_.text(*path).value_or("").ends_with(file);
}

// The first callback has its own field; further ones are (callback, context) in a list.
void TaskWalk::read_callbacks(RemoteAddress future, RawTask& task) const {
  constexpr std::size_t kMostItems = 1024;
  if (const auto callback = objects_.object_at(future + layout_.callback)) {
    read_callback(*callback, task);
  }
  const auto list = objects_.object_at(future + layout_.callbacks);
  if (!list || !objects_.is_static(*list, "list")) {
    return;
  }
  const auto callbacks = objects_.elements(*list, kMostItems);
  task.whole = task.whole && callbacks;
  for (const auto pair : callbacks.value_or(std::vector<RemoteAddress>{})) {
    const auto parts = objects_.elements(pair, kMostItems);
    if (parts && !parts->empty()) {
      read_callback(parts->front(), task);
    }
  }
}

// asyncio's own callbacks keep the future or the task that waits. Others prove nothing.
void TaskWalk::read_callback(RemoteAddress callback, RawTask& task) const {
  constexpr std::size_t kMostFulfilled = 64;
  constexpr std::size_t kMostItems = 64;
  const auto& layout = objects_.layout();
  if (objects_.is_static(callback, "method")) {
    const auto function = objects_.object_at(callback + layout.method_function);
    const auto group = objects_.object_at(callback + layout.method_self);
    if (function && group &&
        is_function(*function, "TaskGroup._on_task_done", "asyncio/taskgroups.py")) {
      const auto parent = objects_.attribute(*group, "_parent_task");
      if (parent && is_task(*parent) && task.awaited_by.size() < kMostAwaiters) {
        task.awaited_by.push_back(*parent);
      }
    }
    return;
  }
  constexpr auto kFile = "asyncio/tasks.py";
  if (!is_function(callback, "gather.<locals>._done_callback", kFile) &&
      !is_function(callback, "_wait.<locals>._on_completion", kFile) &&
      !is_function(callback, "shield.<locals>._inner_done_callback", kFile)) {
    return;
  }
  const auto closure = objects_.object_at(callback + layout.function_closure);
  const auto cells = closure ? objects_.elements(*closure, kMostItems) : std::nullopt;
  for (const auto cell : cells.value_or(std::vector<RemoteAddress>{})) {
    const auto content = objects_.is_static(cell, "cell")
                             ? objects_.object_at(cell + layout.cell_content)
                             : std::nullopt;
    if (content && *content != task.address && task.fulfils.size() < kMostFulfilled &&
        std::ranges::find(task.fulfils, *content) == task.fulfils.end() &&
        objects_.is_a(*content, kFuture)) {
      task.fulfils.push_back(*content);
    }
  }
}

void TaskWalk::derive_awaiters(std::vector<RawTask>& tasks) const {
  if (layout_.published) {
    return;
  }
  std::unordered_multimap<std::uint64_t, RemoteAddress> waiting;  // by what they wait for
  for (const auto& task : tasks) {
    if (!task.waits_for.is_null()) {
      waiting.emplace(task.waits_for.value(), task.address);
    }
  }
  for (auto& task : tasks) {
    auto futures = task.fulfils;
    futures.push_back(task.address);
    for (const auto future : futures) {
      const auto [first, last] = waiting.equal_range(future.value());
      for (auto found = first; found != last && task.awaited_by.size() < kMostAwaiters; ++found) {
        task.awaited_by.push_back(found->second);
      }
    }
    std::ranges::sort(task.awaited_by);
    task.awaited_by.erase(std::unique(task.awaited_by.begin(), task.awaited_by.end()),
                          task.awaited_by.end());
  }
}

}  // namespace pyinject::python
