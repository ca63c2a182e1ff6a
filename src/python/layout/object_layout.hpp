// Offsets in Python's built-in objects and in asyncio's tasks.
#pragma once

#include "pyinject/python/target.hpp"
#include "python/layout/frame_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace pyinject::python {

// Values of PyGenObject.gi_frame_state.
struct GeneratorStates {
  std::int8_t created = 0;         // not started
  std::int8_t suspended_last = 0;  // after CREATED and up to this one: suspended
  // It waits for another generator or for an awaitable. If it has no value of its own (3.12), the
  // next instruction tells: a RESUME with an operand of 2 or more.
  std::optional<std::int8_t> delegates_first = {};  // from this up to suspended_last
  bool operator==(const GeneratorStates&) const = default;
};

// Offsets in bytes. The defaults are those of 3.12 to 3.15, with the GIL.
struct ObjectLayout {
  std::uint64_t head = 16;    // size of PyObject, with which every object begins
  std::uint64_t modules = 0;  // in PyInterpreterState: imports.modules, which is sys.modules
  std::uint64_t locals = 72;  // in _PyInterpreterFrame: localsplus
  // In PyCodeObject, ints: number of words of its locals, and of its evaluation stack.
  std::uint64_t local_count = 72;
  std::uint64_t stack_size = 64;
  std::uint64_t exception_table = 40;
  // Likewise: co_flags, co_argcount (with positional-only ones), co_kwonlyargcount; and the names
  // of its locals, a tuple, with a byte for each that tells what it is (co_localspluskinds).
  std::uint64_t code_flags = 48;
  std::uint64_t argument_count = 52;
  std::uint64_t keyword_count = 60;
  std::uint64_t local_names = 96;
  std::uint64_t local_kinds = 104;
  // In PyTypeObject and PyHeapTypeObject.
  std::uint64_t type_name = 24;
  std::uint64_t instance_size = 32;
  std::uint64_t type_flags = 168;
  std::uint64_t dict_offset = 288;
  std::uint64_t type_order = 344;  // tp_mro
  std::uint64_t cached_keys = 880;
  // In dict, in PyDictKeysObject, and the first value in PyDictValues.
  std::uint64_t dict_keys = 32;
  std::uint64_t dict_values = 40;
  std::uint64_t keys_log2_index_bytes = 9;
  std::uint64_t keys_kind = 10;
  std::uint64_t keys_count = 24;
  std::uint64_t keys_indices = 32;
  std::uint64_t first_value = 8;
  // An instance's dictionary, this many bytes before it. A pointer to its values has the lowest bit
  // set instead (3.12), or the values follow the instance.
  std::uint64_t managed_dict = 24;
  bool values_follow = true;
  // In list, tuple, set, int, module, weakref, method, function, cell.
  std::uint64_t list_items = 24;
  std::uint64_t tuple_items = 24;
  std::uint64_t set_mask = 32;
  std::uint64_t set_table = 40;
  std::uint64_t int_tag = 16;
  std::uint64_t int_digits = 24;
  std::uint64_t module_dict = 16;
  std::uint64_t referent = 16;
  std::uint64_t method_function = 16;
  std::uint64_t method_self = 24;
  std::uint64_t function_code = 48;
  std::uint64_t function_closure = 72;
  std::uint64_t cell_content = 16;
  // In a builtin function (its struct PyMethodDef, and what it is bound to), and in a method
  // descriptor.
  std::uint64_t builtin_method = 16;
  std::uint64_t builtin_self = 24;
  std::uint64_t descriptor_name = 24;
  // In generators and coroutines.
  std::uint64_t generator_state = 67;
  std::uint64_t generator_frame = 72;
  GeneratorStates generator_states = {};
  // What a suspended one waits for, this many bytes before the end of its evaluation stack.
  std::uint64_t awaited = 8;
  // In awaitables that wrap another one.
  std::uint64_t wrapped = 16;
  bool operator==(const ObjectLayout&) const = default;
};

// In TaskObj and FutureObj (Modules/_asynciomodule.c).
struct TaskLayout {
  std::uint64_t size = 0;
  std::uint64_t loop = 16;
  std::uint64_t callback = 24;
  std::uint64_t callbacks = 40;
  std::uint64_t state = 0;
  std::uint64_t waits_for = 0;
  std::uint64_t coroutine = 0;
  std::uint64_t name = 0;
  // From 3.14 on, from the section .AsyncioDebug.
  std::optional<TaskOffsets> published = {};
};

// An index of a u64 field in _Py_DebugOffsets, and what it must be.
struct PublishedField {
  std::size_t index = 0;
  std::uint64_t ObjectLayout::*field = nullptr;
  // In a newer version it may be elsewhere, but this many bytes before the end of a structure whose
  // size is in the word before it. 0: it may not.
  std::uint64_t before_end = 0;
};

// What layout_facts.hpp has of a minor version: of builds with the GIL.
struct ObjectFacts {
  ObjectLayout layout = {};
  std::size_t modules = 0;  // index of the field for imports.modules; 0: not published
  std::span<const PublishedField> published = {};
  TaskLayout tasks = {};  // SIZE 0: published
};

// The offsets for VERSION. RUNTIME: the first bytes of _PyRuntime, whose published offsets must
// agree with them (3.13 and later). A string says what does not fit.
[[nodiscard]] std::variant<ObjectLayout, std::string> object_layout(
    const Version& version, std::span<const std::byte> runtime);

// From PUBLISHED, or (3.12 and 3.13) from a table. HEAD: ObjectLayout::head. nullopt: not known.
[[nodiscard]] std::optional<TaskLayout> task_layout(const Version& version, std::uint64_t head,
                                                    const std::optional<TaskOffsets>& published);

}  // namespace pyinject::python
