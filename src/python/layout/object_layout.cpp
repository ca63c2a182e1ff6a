#include "python/layout/object_layout.hpp"

#include "python/layout/layout_facts.hpp"

#include <fmt/format.h>

#include <cstring>

namespace pyinject::python {

namespace {

// The same for free-threaded builds: each object's head is longer, and an object has no garbage
// collector's head, so its dictionary is directly before it (pycore_object.h:
// MANAGED_DICT_OFFSET).
ObjectLayout free_threaded(ObjectLayout layout) {
  using L = ObjectLayout;
  for (const auto field : {&L::head,
                           &L::local_count,
                           &L::stack_size,
                           &L::exception_table,
                           &L::code_flags,
                           &L::argument_count,
                           &L::keyword_count,
                           &L::local_names,
                           &L::local_kinds,
                           &L::type_name,
                           &L::instance_size,
                           &L::type_flags,
                           &L::dict_offset,
                           &L::type_order,
                           &L::cached_keys,
                           &L::dict_keys,
                           &L::dict_values,
                           &L::list_items,
                           &L::tuple_items,
                           &L::set_mask,
                           &L::set_table,
                           &L::int_tag,
                           &L::int_digits,
                           &L::module_dict,
                           &L::referent,
                           &L::method_function,
                           &L::method_self,
                           &L::function_code,
                           &L::function_closure,
                           &L::cell_content,
                           &L::builtin_method,
                           &L::builtin_self,
                           &L::descriptor_name,
                           &L::generator_state,
                           &L::generator_frame,
                           &L::wrapped}) {
    layout.*field += kFreeThreadedGrowth.object_head;
  }
  layout.managed_dict = sizeof(std::uint64_t);
  return layout;
}

}  // namespace

std::variant<ObjectLayout, std::string> object_layout(const Version& version,
                                                      std::span<const std::byte> runtime) {
  constexpr std::uint64_t kMostInterpreter = std::uint64_t{4} << 20U;
  const auto word = [runtime](std::size_t index) {
    std::uint64_t value = 0;
    if ((index + 1) * sizeof value <= runtime.size()) {
      std::memcpy(&value, runtime.data() + index * sizeof value, sizeof value);
    }
    return value;
  };
  const auto* const readable = readable_facts(version);
  if (readable == nullptr) {
    return fmt::format("no objects are known for {}", to_string(version));
  }
  const auto& facts = readable->objects;
  constexpr std::size_t kFreeThreaded = 2;
  const bool threads_free = facts.modules != 0 && word(kFreeThreaded) != 0;
  ObjectLayout layout = threads_free ? free_threaded(facts.layout) : facts.layout;
  for (const auto& [index, field, before_end] : facts.published) {
    if (before_end != 0 && version.minor != readable->minor) {
      layout.*field = word(index - 1) - before_end;
    }
    if (word(index) != layout.*field) {
      return fmt::format("its objects are not those of this version: {} instead of {} (word {})",
                         word(index), layout.*field, index);
    }
  }
  if (facts.modules != 0) {
    layout.modules = word(facts.modules);
    if (word(facts.modules + 1) + 16 != layout.modules) {  // PyInterpreterState.sysdict
      return fmt::format("its debug offsets make no sense: sys.modules at {}", layout.modules);
    }
  }
  if (layout.modules > kMostInterpreter || layout.modules % sizeof(std::uint64_t) != 0) {
    return fmt::format("its debug offsets make no sense: sys.modules at {}", layout.modules);
  }
  return layout;
}

std::optional<TaskLayout> task_layout(const Version& version, std::uint64_t head,
                                      const std::optional<TaskOffsets>& published) {
  const auto growth = head - ObjectLayout{}.head;
  const auto grow = [growth](TaskLayout& layout, auto... fields) {
    ((layout.*fields += growth), ...);
  };
  using L = TaskLayout;
  TaskLayout layout;
  if (const auto* const facts = layout_facts(version);
      facts != nullptr && facts->objects.tasks.size != 0) {
    layout = facts->objects.tasks;
    grow(layout, &L::size, &L::state, &L::waits_for, &L::coroutine, &L::name);
  } else if (published) {
    // Not published: the state is an int before the flag that says whether it is a task, and the
    // future that it waits for is the word before its coroutine (3.14 and 3.15).
    layout.size = published->size;
    layout.state = std::uint64_t{published->is_task} / 8 * 8;
    layout.waits_for = published->coroutine - sizeof(std::uint64_t);
    layout.coroutine = published->coroutine;
    layout.name = published->name;
    layout.published = published;
  } else {
    return std::nullopt;
  }
  grow(layout, &L::loop, &L::callback, &L::callbacks);
  return layout;
}

}  // namespace pyinject::python
