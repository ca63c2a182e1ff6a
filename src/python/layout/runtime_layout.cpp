#include "python/layout/runtime_layout.hpp"

#include "python/layout/layout_facts.hpp"
#include "python/layout/version_policy.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

namespace pyinject::python {

namespace {

constexpr std::string_view kCookie = "xdebugpy";

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

void take_published(const PublishedOffsets& at, const Words& words, StackLayout& stack) {
  stack.previous_thread = words[at.thread];
  stack.native_thread_id = words[at.thread_id + 1];
  stack.current_frame = words[at.thread + 3];
  stack.frame_size = words[at.frame];
  stack.executable = words[at.frame + 2];
  stack.previous = words[at.frame + 1];
  stack.instruction = words[at.frame + 3];
  stack.owner = words[at.frame + 5];
  // Not published by 3.13: `int stacktop` follows instr_ptr (pycore_frame.h).
  stack.stack_end = stack.stack_end_is_index ? words[at.frame + 3] + 8 : words[at.frame + 6];
  stack.file_name = words[at.code + 1];
  stack.qualified_name = words[at.code + 3];
  stack.line_table = words[at.code + 4];
  stack.first_line = words[at.code + 5];
  stack.byte_code = words[at.code + 9];
  stack.type = words[at.object_type];
  stack.item_count = words[at.bytes + 1];
  stack.bytes_data = words[at.bytes + 2];
  stack.text_length = words[at.text + 2];
  stack.text_state = words[at.text + 1];
  stack.ascii_data = words[at.text + 3];
}

void take_published(const PublishedOffsets& at, const Words& words, RuntimeLayout& layout) {
  const auto interpreters_head = words[at.runtime + 2];
  layout.runtime_size = words[at.runtime];
  layout.finalizing = words[at.runtime + 1];
  layout.initialized = layout.finalizing - 8;
  layout.interpreters_main = interpreters_head + 8;
  layout.main_thread = interpreters_head + 24;
  layout.interpreter_size = words[at.interpreter];
  layout.interpreter_id = words[at.interpreter + 1];
  layout.next_interpreter = words[at.interpreter + 2];
  layout.threads_head = words[at.interpreter + 3];
  layout.gil = words[at.gil];
  layout.gil_locked = words[at.gil + 3] - words[at.gil + 1];
  layout.gil_last_holder = words[at.gil + 4] - words[at.gil + 1];
  layout.next_thread = words[at.thread + 1];
  layout.thread_interpreter = words[at.thread + 2];
  layout.thread_id = words[at.thread_id];
  layout.free_threaded = words[2] != 0;
  take_published(at, words, layout.stack);
}

// Empty if every offset is plausible.
std::string implausible(const PublishedOffsets& at, const RuntimeLayout& layout) {
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
  const auto* const facts = layout_facts(version);
  if (facts == nullptr) {
    return fmt::format("no layout is known for {}", to_string(version));
  }
  RuntimeLayout layout = facts->layout;
  if (!facts->published) {
    return layout;
  }
  const Words words{runtime};
  if (runtime.size() < facts->published->size ||
      std::memcmp(runtime.data(), kCookie.data(), kCookie.size()) != 0) {
    return std::string{"_PyRuntime does not begin with the debug offsets' cookie"};
  }
  const Version stated = version_from_hex(words[1]);
  if (stated.major != version.major || stated.minor != version.minor) {
    return fmt::format("Py_Version says {}, the debug offsets say {}", to_string(version),
                       to_string(stated));
  }
  take_published(*facts->published, words, layout);
  if (const auto wrong = implausible(*facts->published, layout); !wrong.empty()) {
    return "the debug offsets are not those of this version: " + wrong;
  }
  if (!unmaps_used_arenas(version)) {
    layout.code_arenas = 0;
  }
  return layout;
}

}  // namespace pyinject::python
