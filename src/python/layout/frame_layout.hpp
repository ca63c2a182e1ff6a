// Where a target has its Python frames: all that a reader outside of this library needs to know.
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/target.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace pyinject::python {

// Addresses in the target, and offsets in bytes into CPython's structures.
struct FrameLayout {
  base::RemoteAddress interpreters;  // of the pointer to the newest PyInterpreterState
  base::RemoteAddress code_type;     // PyCode_Type
  base::RemoteAddress text_type;     // PyUnicode_Type
  // PyInterpreterState.
  std::uint32_t next_interpreter = 0;
  std::uint32_t threads_head = 0;
  std::uint32_t gil = 0;  // pointer to a struct _gil_runtime_state
  // PyThreadState.
  std::uint32_t next_thread = 0;
  std::uint32_t thread_interpreter = 0;
  std::uint32_t thread_id = 0;  // pthread_self() of that thread
  std::uint32_t current_frame = 0;
  bool frame_in_cframe = false;       // 3.12: what current_frame points at has the pointer first
  std::uint32_t previous_cframe = 0;  // in that struct: the one of the evaluator before
  std::uint32_t running_task = 0;     // asyncio's, of that thread; 0: not known
  bool tasks_later = false;           // that is found out when asyncio is loaded
  // _PyInterpreterFrame.
  std::uint32_t executable = 0;
  std::uint64_t executable_tags = 0;  // bits of that word that are no part of the pointer
  std::uint32_t previous = 0;
  std::uint32_t instruction = 0;
  std::uint32_t owner = 0;  // kFrameOwners (layout_facts.hpp)
  // PyCodeObject.
  std::uint32_t file_name = 0;
  std::uint32_t qualified_name = 0;
  std::uint32_t line_table = 0;
  std::uint32_t first_line = 0;
  std::uint32_t byte_code = 0;
  // All objects; bytes; str; int; asyncio's Task.
  std::uint32_t type = 0;
  std::uint32_t item_count = 0;
  std::uint32_t bytes_data = 0;
  std::uint32_t text_length = 0;
  std::uint32_t text_state = 0;
  std::uint32_t ascii_data = 0;
  std::uint32_t int_digits = 0;
  std::uint32_t task_name = 0;
  // struct _gil_runtime_state.
  std::uint32_t gil_last_holder = 0;
  std::uint32_t gil_locked = 0;
};

// Where asyncio's tasks are.
struct TaskOffsets {
  std::uint32_t name = 0;     // FrameLayout::task_name
  std::uint32_t running = 0;  // FrameLayout::running_task
};
// As the module _asyncio that PID has loaded says (3.14); nullopt: it has loaded none.
[[nodiscard]] std::optional<TaskOffsets> loaded_task_offsets(base::Pid pid);

// From TARGET's debug offsets (3.13 and later) or a table (3.12), its symbols, and, from 3.14 on,
// its section .AsyncioDebug, if asyncio is loaded. A string says what does not fit.
[[nodiscard]] std::variant<FrameLayout, std::string> frame_layout(const Target& target);

}  // namespace pyinject::python
