#include "python/layout/object_layout.hpp"

#include "python/layout/layout_facts.hpp"

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace pyinject::python {

namespace {

// An index of a u64 field in _Py_DebugOffsets, and what it must be.
struct Published {
  std::size_t index = 0;
  std::uint64_t ObjectLayout::*field = nullptr;
  // In a newer version it may be elsewhere, but this many bytes before the end of a structure whose
  // size is in the word before it. 0: it may not.
  std::uint64_t before_end = 0;
};

struct ObjectFacts {
  std::uint8_t minor = 0;
  ObjectLayout layout = {};
  std::size_t modules = 0;  // index of the field for imports.modules; 0: not published
  std::vector<Published> published = {};
};

// Sources: the headers and debug information of 3.12.1 and 3.13.0; measured with 3.14 and 3.15
// (docs/cpython-notes.md).
const std::vector<ObjectFacts>& all_object_facts() {
  using L = ObjectLayout;
  static const std::vector<ObjectFacts> facts{
      {.minor = 12,
       .layout = {.modules = 944,
                  .first_value = 0,
                  .values_follow = false,
                  .generator_states = {.created = -2, .suspended_last = -1}}},
      {.minor = 13,
       .layout = {.generator_states = {.created = -3,
                                       .suspended_last = -1,
                                       .delegates_first = std::int8_t{-1}}},
       .modules = 11,
       .published = {{32, &L::locals},
                     {47, &L::type_name},
                     {49, &L::type_flags},
                     {51, &L::tuple_items},
                     {54, &L::list_items},
                     {57, &L::dict_keys},
                     {58, &L::dict_values},
                     {62, &L::int_tag},
                     {63, &L::int_digits}}},
      {.minor = 14,
       .layout = {.locals = 80,
                  .tuple_items = 32,
                  .generator_states = {.created = -3,
                                       .suspended_last = -1,
                                       .delegates_first = std::int8_t{-1}}},
       .modules = 12,
       .published = {{35, &L::locals},
                     {53, &L::type_name},
                     {55, &L::type_flags},
                     {57, &L::tuple_items},
                     {60, &L::list_items},
                     {64, &L::set_table},
                     {65, &L::set_mask},
                     {67, &L::dict_keys},
                     {68, &L::dict_values},
                     {72, &L::int_tag},
                     {73, &L::int_digits},
                     {85, &L::generator_frame},
                     {86, &L::generator_state}}},
      {.minor = 15,
       .layout = {.locals = 80,
                  .cached_keys = 888,
                  .tuple_items = 32,
                  .generator_states = {.created = 0,
                                       .suspended_last = 3,
                                       .delegates_first = std::int8_t{2}},
                  .awaited = 16},
       .modules = 12,
       .published = {{43, &L::locals},
                     {61, &L::type_name},
                     {63, &L::type_flags},
                     {64, &L::instance_size},
                     {65, &L::dict_offset},
                     {67, &L::cached_keys, 56},
                     {69, &L::tuple_items},
                     {72, &L::list_items},
                     {76, &L::set_table},
                     {77, &L::set_mask},
                     {79, &L::dict_keys},
                     {80, &L::dict_values},
                     {84, &L::int_tag},
                     {85, &L::int_digits},
                     {101, &L::generator_frame},
                     {102, &L::generator_state}}},
  };
  return facts;
}

// The same for free-threaded builds: each object's head is longer, and an object has no garbage
// collector's head, so its dictionary is directly before it (pycore_object.h:
// MANAGED_DICT_OFFSET).
ObjectLayout free_threaded(ObjectLayout layout) {
  using L = ObjectLayout;
  for (const auto field : {&L::head,
                           &L::local_count,
                           &L::stack_size,
                           &L::exception_table,
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
  for (const auto& facts : all_object_facts()) {
    if (readable == nullptr || facts.minor != readable->minor) {
      continue;
    }
    constexpr std::size_t kFreeThreaded = 2;
    const bool threads_free = facts.modules != 0 && word(kFreeThreaded) != 0;
    ObjectLayout layout = threads_free ? free_threaded(facts.layout) : facts.layout;
    for (const auto& [index, field, before_end] : facts.published) {
      if (before_end != 0 && version.minor != facts.minor) {
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
  return fmt::format("no objects are known for {}", to_string(version));
}

std::optional<TaskLayout> task_layout(const Version& version, std::uint64_t head,
                                      const std::optional<TaskOffsets>& published) {
  const auto growth = head - ObjectLayout{}.head;
  const auto grown = [growth](TaskLayout layout) {
    for (const auto field : {&TaskLayout::loop, &TaskLayout::callback, &TaskLayout::callbacks}) {
      layout.*field += growth;
    }
    return layout;
  };
  if (version.major == 3 && version.minor == 12) {
    return TaskLayout{.size = 176, .state = 88, .waits_for = 128, .coroutine = 136, .name = 144};
  }
  if (version.major == 3 && version.minor == 13) {
    return grown({.size = 144 + growth,
                  .state = 96 + growth,
                  .waits_for = 112 + growth,
                  .coroutine = 120 + growth,
                  .name = 128 + growth});
  }
  if (!published) {
    return std::nullopt;
  }
  // Not published: the state is an int before the flag that says whether it is a task, and the
  // future that it waits for is the word before its coroutine (3.14 and 3.15).
  return grown({.size = published->size,
                .state = std::uint64_t{published->is_task} / 8 * 8,
                .waits_for = published->coroutine - sizeof(std::uint64_t),
                .coroutine = published->coroutine,
                .name = published->name,
                .published = published});
}

}  // namespace pyinject::python
