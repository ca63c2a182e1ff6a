// Offsets inside CPython's runtime for each version, and their validation.
#pragma once

#include "pyinject/python/target.hpp"
#include "python/layout/stack_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace pyinject::python {

// The queue of the main thread's pending calls.
enum class QueueForm {
  kRing32,  // 3.12: a ring of 32, a POSIX semaphore as lock
  kArray,   // 3.13+: an array of 300 entries, 32 of them used, with a one-byte PyMutex
};

// Offsets in bytes. PyInterpreterState, PyThreadState and GIL offsets of 3.13+ come from the
// target's own _Py_DebugOffsets; the rest is a table (layout_facts.hpp), checked against the
// target's code (code_probe.hpp).
struct RuntimeLayout {
  // In _PyRuntime.
  std::uint64_t runtime_size = 0;
  std::uint64_t initialized = 0;  // int: 1 after Py_Initialize
  std::uint64_t finalizing = 0;   // the PyThreadState that finalizes, or null
  std::uint64_t interpreters_main = 0;
  std::uint64_t main_thread = 0;  // pthread_self() of the main thread
  std::uint64_t pending_calls = 0;
  QueueForm queue = QueueForm::kArray;
  std::uint64_t signals_pending = 0;  // int; if the eval breaker has no bit for it (3.12)
  // The list of trampoline arenas (code_arenas.hpp). 0: arenas of this release can be ignored.
  std::uint64_t code_arenas = 0;
  // In PyInterpreterState.
  std::uint64_t interpreter_size = 0;  // 0: unknown
  std::uint64_t interpreter_id = 0;
  std::uint64_t next_interpreter = 0;
  std::uint64_t threads_head = 0;
  std::uint64_t gil = 0;  // pointer to the struct _gil_runtime_state
  std::uint64_t eval_frame = 0;
  // gc.collecting, an int: 1 while the garbage collector runs (Modules/gcmodule.c, Python/gc.c).
  std::uint64_t gc_collecting = 0;  // 0: unknown
  // The eval breaker: an int in the interpreter on 3.12, a word in each thread state from 3.13 on.
  std::uint64_t eval_breaker = 0;
  bool eval_breaker_per_thread = true;
  // Bits of that word.
  std::uint64_t signals_pending_bit = 0;
  std::uint64_t calls_to_do_bit = 0;
  // In PyThreadState.
  std::uint64_t next_thread = 0;
  std::uint64_t thread_interpreter = 0;
  std::uint64_t thread_id = 0;  // pthread_self() of the thread
  // Set if Python code is observed: PyInterpreterState.audit_hooks (sys.addaudithook), and in
  // PyThreadState c_tracefunc and c_profilefunc (sys.settrace, sys.setprofile). They cannot be
  // verified; a wrong offset makes this tool at worst too careful, or no more careful than without
  // them.
  std::uint64_t audit_hooks = 0;
  std::uint64_t trace_function = 0;
  std::uint64_t profile_function = 0;
  // In struct _gil_runtime_state, relative to its start.
  std::uint64_t gil_last_holder = 0;
  std::uint64_t gil_locked = 0;
  bool free_threaded = false;
  bool publishes_tasks = false;  // offsets of tasks, in the section .AsyncioDebug (3.14+)
  OpcodeSet calls_c = {};        // empty: unknown
  StackLayout stack;
  bool operator==(const RuntimeLayout&) const = default;
};

// Bytes of _Py_DebugOffsets that parse_layout() needs.
inline constexpr std::size_t kDebugOffsetsBytes = 112 * sizeof(std::uint64_t);

// The layout for VERSION. RUNTIME: the first bytes of the target's _PyRuntime, used from 3.13 on.
// Its offsets must have the shape that this release knows: of that version, or for a newer one that
// of the newest. What may differ in a newer one is to be verified by disprove() (layout_proof.hpp).
// A string says what does not fit.
[[nodiscard]] std::variant<RuntimeLayout, std::string> parse_layout(
    const Version& version, std::span<const std::byte> runtime);

}  // namespace pyinject::python
