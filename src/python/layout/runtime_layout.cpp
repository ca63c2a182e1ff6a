#include "python/layout/runtime_layout.hpp"

#include "python/layout/version_policy.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>

namespace pyinject::python {

namespace {

// 3.12 publishes nothing: its headers are the source (Include/internal/pycore_runtime.h,
// pycore_interp.h, pycore_ceval_state.h, pycore_frame.h, cpython/{pystate,code,unicodeobject}.h of
// 3.12.1).
constexpr RuntimeLayout kLayout312{
    .runtime_size = 459944,
    .initialized = 16,
    .finalizing = 24,
    .interpreters_main = 48,
    .main_thread = 64,
    .pending_calls = 2016,
    .queue = QueueForm::kRing32,
    .code_arenas = 1960,
    .interpreter_id = 8,
    .next_interpreter = 0,
    .threads_head = 72,
    .gil = 384,
    .eval_frame = 1744,
    .eval_breaker = 368,
    .eval_breaker_per_thread = false,
    .next_thread = 8,
    .thread_interpreter = 16,
    .thread_id = 136,
    .audit_hooks = 267208,
    .trace_function = 72,
    .profile_function = 64,
    .stack = {.previous_thread = 0,
              .native_thread_id = 144,
              .current_frame = 56,
              .frame_in_cframe = true,
              .frame_size = 80,
              .executable = 0,
              .executable_tags = 0,
              .previous = 8,
              .instruction = 56,
              .owner = 70,
              .stack_end = 64,
              .stack_end_is_index = true,
              .file_name = 112,
              .qualified_name = 128,
              .line_table = 136,
              .first_line = 68,
              .byte_code = 192,
              .type = 8,
              .item_count = 16,
              .bytes_data = 32,
              .text_length = 16,
              .text_state = 32,
              .ascii_data = 40},
};

// Which u64 of _Py_DebugOffsets is what (Include/internal/pycore_debug_offsets.h; in 3.13
// pycore_runtime.h), and the offsets that it does not publish.
struct Published {
  std::uint8_t minor;
  std::size_t size;  // of _Py_DebugOffsets: the runtime's own fields begin behind it
  std::size_t runtime_size;
  std::size_t finalizing;
  std::size_t interpreters_head;
  std::size_t interpreter_size;
  std::size_t interpreter_id;
  std::size_t next_interpreter;
  std::size_t threads_head;
  std::size_t gil;
  std::size_t gil_state;
  std::size_t gil_locked;
  std::size_t gil_holder;
  std::size_t next_thread;
  std::size_t thread_interpreter;
  std::size_t thread_id;
  std::size_t native_thread_id;
  std::size_t current_frame;
  std::size_t previous_thread;
  std::size_t frame;  // size, previous, executable, instr_ptr, localsplus, owner, stackpointer
  std::size_t code;   // size, filename, name, qualname, linetable, firstlineno, 3 others, byte code
  std::size_t object_type;
  std::size_t bytes;  // size, ob_size, ob_sval
  std::size_t text;   // size, state, length, size of its ASCII form
  std::uint64_t executable_tags;
  std::uint64_t pending_calls;
  std::uint64_t code_arenas;
  std::uint64_t eval_frame;
  std::uint64_t audit_hooks;
  std::uint64_t trace_function;
  std::uint64_t profile_function;
};
constexpr std::array kPublished = std::to_array<Published>({
    {.minor = 13,
     .size = 584,
     .runtime_size = 3,
     .finalizing = 4,
     .interpreters_head = 5,
     .interpreter_size = 6,
     .interpreter_id = 7,
     .next_interpreter = 8,
     .threads_head = 9,
     .gil = 14,
     .gil_state = 15,
     .gil_locked = 17,
     .gil_holder = 18,
     .next_thread = 21,
     .thread_interpreter = 22,
     .thread_id = 24,
     .native_thread_id = 25,
     .current_frame = 23,
     .previous_thread = 20,
     .frame = 28,
     .code = 34,
     .object_type = 45,
     .bytes = 64,
     .text = 67,
     .executable_tags = 0,
     .pending_calls = 2640,
     .code_arenas = 2576,
     .eval_frame = 8472,
     .audit_hooks = 10808,
     .trace_function = 88,
     .profile_function = 80},
    {.minor = 14,
     .size = 760,
     .runtime_size = 3,
     .finalizing = 4,
     .interpreters_head = 5,
     .interpreter_size = 6,
     .interpreter_id = 7,
     .next_interpreter = 8,
     .threads_head = 9,
     .gil = 15,
     .gil_state = 16,
     .gil_locked = 18,
     .gil_holder = 19,
     .next_thread = 24,
     .thread_interpreter = 25,
     .thread_id = 27,
     .native_thread_id = 28,
     .current_frame = 26,
     .previous_thread = 23,
     .frame = 31,
     .code = 39,
     .object_type = 51,
     .bytes = 74,
     .text = 77,
     .executable_tags = 3,
     .pending_calls = 2848,
     .code_arenas = 2760,  // of 3.14.0 to 3.14.2
     .eval_frame = 8520,
     .audit_hooks = 10912,
     .trace_function = 88,
     .profile_function = 80},
    {.minor = 15,
     .size = 888,
     .runtime_size = 3,
     .finalizing = 4,
     .interpreters_head = 5,
     .interpreter_size = 6,
     .interpreter_id = 7,
     .next_interpreter = 8,
     .threads_head = 9,
     .gil = 15,
     .gil_state = 16,
     .gil_locked = 18,
     .gil_holder = 19,
     .next_thread = 24,
     .thread_interpreter = 25,
     .thread_id = 30,
     .native_thread_id = 31,
     .current_frame = 26,
     .previous_thread = 23,
     .frame = 39,
     .code = 47,
     .object_type = 59,
     .bytes = 86,
     .text = 89,
     .executable_tags = 3,
     .pending_calls = 2976,
     .code_arenas = 0,
     .eval_frame = 8472,
     .audit_hooks = 10888,
     .trace_function = 112,
     .profile_function = 104},
});

constexpr std::string_view kCookie = "xdebugpy";
// PyThreadState.eval_breaker, 3.13 to 3.15: behind prev, next and interp. 3.14 and 3.15 publish it.
constexpr std::uint64_t kThreadEvalBreaker = 24;

class Words {
 public:
  explicit Words(std::span<const std::byte> bytes) : bytes_{bytes} {}
  [[nodiscard]] std::uint64_t operator[](std::size_t index) const {
    std::uint64_t value = 0;
    if ((index + 1) * sizeof value <= bytes_.size()) {
      std::memcpy(&value, bytes_.data() + index * sizeof value, sizeof value);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

StackLayout stack_from_published(const Published& at, const Words& words) {
  // 3.13 does not publish it: `int stacktop` is behind instr_ptr (pycore_frame.h).
  const bool index = at.minor == 13;
  return {.previous_thread = words[at.previous_thread],
          .native_thread_id = words[at.native_thread_id],
          .current_frame = words[at.current_frame],
          .frame_size = words[at.frame],
          .executable = words[at.frame + 2],
          .executable_tags = at.executable_tags,
          .previous = words[at.frame + 1],
          .instruction = words[at.frame + 3],
          .owner = words[at.frame + 5],
          .stack_end = index ? words[at.frame + 3] + 8 : words[at.frame + 6],
          .stack_end_is_index = index,
          .file_name = words[at.code + 1],
          .qualified_name = words[at.code + 3],
          .line_table = words[at.code + 4],
          .first_line = words[at.code + 5],
          .byte_code = words[at.code + 9],
          .type = words[at.object_type],
          .item_count = words[at.bytes + 1],
          .bytes_data = words[at.bytes + 2],
          .text_length = words[at.text + 2],
          .text_state = words[at.text + 1],
          .ascii_data = words[at.text + 3]};
}

RuntimeLayout from_published(const Published& at, const Words& words) {
  RuntimeLayout layout{
      .runtime_size = words[at.runtime_size],
      .initialized = words[at.finalizing] - 8,
      .finalizing = words[at.finalizing],
      .interpreters_main = words[at.interpreters_head] + 8,
      .main_thread = words[at.interpreters_head] + 24,
      .pending_calls = at.pending_calls,
      .queue = QueueForm::kArray,
      .code_arenas = at.code_arenas,
      .interpreter_size = words[at.interpreter_size],
      .interpreter_id = words[at.interpreter_id],
      .next_interpreter = words[at.next_interpreter],
      .threads_head = words[at.threads_head],
      .gil = words[at.gil],
      .eval_frame = at.eval_frame,
      .eval_breaker = kThreadEvalBreaker,
      .eval_breaker_per_thread = true,
      .next_thread = words[at.next_thread],
      .thread_interpreter = words[at.thread_interpreter],
      .thread_id = words[at.thread_id],
      .audit_hooks = at.audit_hooks,
      .trace_function = at.trace_function,
      .profile_function = at.profile_function,
      .free_threaded = words[2] != 0,
      .stack = stack_from_published(at, words),
  };
  layout.gil_last_holder = words[at.gil_holder] - words[at.gil_state];
  layout.gil_locked = words[at.gil_locked] - words[at.gil_state];
  return layout;
}

// Empty when every offset can be one.
std::string implausible(const Published& at, const RuntimeLayout& layout) {
  const auto bad = [](std::string_view what, std::uint64_t value, std::uint64_t most) {
    return value > most || value % 4 != 0 ? fmt::format("{} at {}", what, value) : std::string{};
  };
  constexpr std::uint64_t kMostRuntime = std::uint64_t{4} << 20U;
  if (layout.runtime_size < at.size || layout.runtime_size > kMostRuntime) {
    return fmt::format("a runtime of {} bytes", layout.runtime_size);
  }
  if (layout.interpreter_size < 4096 || layout.interpreter_size > kMostRuntime) {
    return fmt::format("an interpreter state of {} bytes", layout.interpreter_size);
  }
  if (layout.finalizing < at.size || layout.interpreters_main < at.size) {
    return fmt::format("finalizing at {}, main interpreter at {}", layout.finalizing,
                       layout.interpreters_main);
  }
  constexpr std::uint64_t kMostThread = 2048;
  for (const auto& text :
       {bad("finalizing", layout.finalizing, layout.runtime_size),
        bad("main interpreter", layout.interpreters_main, layout.runtime_size),
        bad("pending calls", layout.pending_calls, layout.runtime_size),
        bad("interpreter id", layout.interpreter_id, layout.interpreter_size),
        bad("next interpreter", layout.next_interpreter, layout.interpreter_size),
        bad("thread list", layout.threads_head, layout.interpreter_size),
        bad("GIL", layout.gil, layout.interpreter_size),
        bad("eval_frame", layout.eval_frame, layout.interpreter_size),
        bad("next thread", layout.next_thread, kMostThread),
        bad("thread's interpreter", layout.thread_interpreter, kMostThread),
        bad("thread id", layout.thread_id, kMostThread),
        bad("native thread id", layout.stack.native_thread_id, kMostThread),
        bad("GIL holder", layout.gil_last_holder, kMostThread),
        bad("GIL lock", layout.gil_locked, kMostThread)}) {
    if (!text.empty()) {
      return text;
    }
  }
  return {};
}

}  // namespace

std::variant<RuntimeLayout, std::string> parse_layout(const Version& version,
                                                      std::span<const std::byte> runtime) {
  if (version.major == 3 && version.minor == 12) {
    return kLayout312;
  }
  for (const auto& published : kPublished) {
    if (version.major != 3 || version.minor != published.minor) {
      continue;
    }
    const Words words{runtime};
    if (runtime.size() < published.size ||
        std::memcmp(runtime.data(), kCookie.data(), kCookie.size()) != 0) {
      return std::string{"_PyRuntime does not begin with the debug offsets' cookie"};
    }
    const Version stated = version_from_hex(words[1]);
    if (stated.major != version.major || stated.minor != version.minor) {
      return fmt::format("Py_Version says {}, the debug offsets say {}", to_string(version),
                         to_string(stated));
    }
    RuntimeLayout layout = from_published(published, words);
    if (const auto wrong = implausible(published, layout); !wrong.empty()) {
      return "the debug offsets are not those of this version: " + wrong;
    }
    if (!unmaps_used_arenas(version)) {
      layout.code_arenas = 0;
    }
    return layout;
  }
  return fmt::format("no layout is known for {}", to_string(version));
}

}  // namespace pyinject::python
