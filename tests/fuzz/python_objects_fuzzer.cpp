// The objects of a target: types, dictionaries, tasks, locks.
#include "fuzz/fuzz.hpp"
#include "python/layout/layout_facts.hpp"
#include "python/layout/object_layout.hpp"
#include "python/objects/frame_locals.hpp"
#include "python/objects/lock_walk.hpp"
#include "python/objects/remote_objects.hpp"
#include "python/objects/task_walk.hpp"
#include "python/objects/value_text.hpp"
#include "python/stacks/page_cache.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace pyinject::fuzz {
namespace {

using base::RemoteAddress;

constexpr python::Version k312{.major = 3, .minor = 12};

void check_objects(const python::RemoteObjects& objects, RemoteAddress at) {
  require(objects.type_name(at).size() <= 128, "names of types are bounded");
  if (const auto items = objects.items(at)) {
    require(items->size() <= python::RemoteObjects::kMostItems, "dicts are bounded");
  }
  if (const auto elements = objects.elements(at, 1000)) {
    require(elements->size() <= 1000, "sequences and sets are bounded");
  }
  const auto value = objects.attribute(at, "_name");
  require(!value || !value->is_null(), "an attribute is an object");
  (void)objects.global(at, "_active");
  require(python::value_text(objects, at).size() <= 2000, "texts of values are bounded");
  if (const auto locals = python::frame_locals(objects, at, at + 64)) {
    require(locals->variables.size() <= 100, "variables are bounded");
  }
}

void check_tasks(const python::TaskWalk& walk, RemoteAddress at) {
  python::RawTasks found = walk.list({.interpreter = at, .threads = {at + 8}});
  require(found.tasks.size() <= python::kMostTasks, "lists of tasks are bounded");
  found.tasks.resize(std::min<std::size_t>(found.tasks.size(), 4));
  found.tasks.push_back({.address = at});
  for (auto& task : found.tasks) {
    task.awaits.clear();
    if (walk.read(task) == python::TaskWalk::Outcome::kRead) {
      require(task.awaits.size() <= python::kMostAwaits, "chains are bounded");
      require(task.awaited_by.size() <= python::kMostAwaiters, "awaiters are bounded");
    }
  }
  walk.derive_awaiters(found.tasks);
}

}  // namespace

void run(Input input) {
  const bool published = input.take<std::uint8_t>() % 2 != 0;
  const RemoteAddress at{input.take<std::uint32_t>()};
  const auto stack = std::get<python::RuntimeLayout>(python::parse_layout(k312, {})).stack;
  auto layout = std::get<python::ObjectLayout>(python::object_layout(k312, {}));
  layout.values_follow = published;
  const python::TaskOffsets offsets{.name = 136,
                                    .running = 872,
                                    .size = 168,
                                    .awaited_by = 96,
                                    .is_task = 108,
                                    .awaited_by_is_set = 109,
                                    .coroutine = 128,
                                    .node = 152,
                                    .interpreter_tasks = 1000,
                                    .thread_tasks = 880};
  const auto tasks = published ? python::task_layout({.major = 3, .minor = 14}, 16, offsets)
                               : python::task_layout(k312, 16, std::nullopt);
  const HostileMemory memory{input.rest()};
  const python::PageCache pages{memory};
  const python::RemoteObjects objects{pages, stack, layout};
  check_objects(objects, at);
  check_tasks(python::TaskWalk{objects, *tasks}, at);
  const python::LockWalk locks{objects};
  const std::array frames{python::NamedFrame{
      .address = at, .code = at, .names = {.qualname = "Thread.join", .file = "threading.py"}}};
  const auto wait = locks.wait(frames, at + 16);
  require(!wait || !wait->address.is_null(), "a wait has an object");
  (void)locks.holds(at, at, at + 16);
}

}  // namespace pyinject::fuzz
