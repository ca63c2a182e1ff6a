// The layout of a target's Python frames: everything that a reader outside of this library needs.
#pragma once

#include "elf/elf_file.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/target.hpp"
#include "python/layout/process_image.hpp"
#include "python/layout/stack_layout.hpp"

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
  std::uint32_t interpreter_id = 0;
  std::uint32_t threads_head = 0;
  std::uint32_t gil = 0;  // pointer to a struct _gil_runtime_state
  // PyThreadState.
  std::uint32_t next_thread = 0;
  std::uint32_t thread_interpreter = 0;
  std::uint32_t thread_id = 0;  // pthread_self() of the thread
  std::uint32_t current_frame = 0;
  bool frame_in_cframe = false;       // 3.12: current_frame leads to a struct that starts with it
  std::uint32_t previous_cframe = 0;  // in that struct: that of the previous evaluator
  std::uint32_t running_task = 0;     // asyncio's task of the thread; 0: unknown
  bool tasks_later = false;           // running_task is determined when asyncio is loaded
  // _PyInterpreterFrame.
  std::uint32_t executable = 0;
  std::uint64_t executable_tags = 0;  // bits of that word that are not part of the pointer
  std::uint32_t previous = 0;
  std::uint32_t instruction = 0;
  std::uint32_t owner = 0;  // kFrameOwners (layout_facts.hpp)
  // PyCodeObject.
  std::uint32_t file_name = 0;
  std::uint32_t qualified_name = 0;
  std::uint32_t line_table = 0;
  std::uint32_t first_line = 0;
  std::uint32_t byte_code = 0;
  std::uint32_t thread_byte_code = 0;  // StackLayout
  std::uint32_t byte_code_index = 0;
  // All objects; bytes; str; int; asyncio's Task.
  std::uint32_t type = 0;
  std::uint32_t item_count = 0;
  std::uint32_t bytes_data = 0;
  std::uint32_t text_length = 0;
  std::uint32_t text_state = 0;
  TextForm text_form = {};
  std::uint32_t ascii_data = 0;
  std::uint32_t int_digits = 0;
  std::uint32_t task_name = 0;
  // struct _gil_runtime_state.
  std::uint32_t gil_last_holder = 0;
  std::uint32_t gil_locked = 0;
  // PyInterpreterState.gc.collecting; 0: unknown, or it does not tell which thread collects.
  std::uint32_t gc_collecting = 0;
  OpcodeSet calls_c = {};  // RuntimeLayout::calls_c
};

// Where asyncio stores its tasks.
struct TaskOffsets {
  std::uint32_t name = 0;     // FrameLayout::task_name
  std::uint32_t running = 0;  // FrameLayout::running_task
  // In a task. AWAITED_BY: a future, or (if the flag at AWAITED_BY_IS_SET is 1) a set of futures.
  std::uint32_t size = 0;
  std::uint32_t awaited_by = 0;
  std::uint32_t is_task = 0;
  std::uint32_t awaited_by_is_set = 0;
  std::uint32_t coroutine = 0;
  std::uint32_t node = 0;  // in a list of tasks
  // Heads of such lists, in an interpreter state and in a thread state.
  std::uint32_t interpreter_tasks = 0;
  std::uint32_t thread_tasks = 0;
};
// From the module _asyncio that a process has loaded (3.14); nullopt: not loaded.
[[nodiscard]] std::optional<TaskOffsets> loaded_task_offsets(base::Pid pid);
[[nodiscard]] std::optional<TaskOffsets> loaded_task_offsets(const ProcessImage& image);
// From FILE, the interpreter of IMAGE (3.15), or from the loaded module (3.14).
[[nodiscard]] std::optional<TaskOffsets> find_task_offsets(const ProcessImage& image,
                                                           const elf::ElfFile& file);

// From TARGET's debug offsets (3.13 and later) or a table (3.12), its symbols, and, from 3.14 on,
// its section .AsyncioDebug if asyncio is loaded. A string says what does not fit.
[[nodiscard]] std::variant<FrameLayout, std::string> frame_layout(const Target& target);

}  // namespace pyinject::python
