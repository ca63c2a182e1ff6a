#include "python/layout/runtime_layout.hpp"

#include "python/layout/layout_facts.hpp"
#include "python/layout/version_policy.hpp"

#include <fmt/format.h>

#include <array>
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
  if (at.thread_byte_code != 0) {
    stack.thread_byte_code = words[at.thread_byte_code];
    stack.byte_code_index = words[at.byte_code_index];
  }
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
  take_published(at, words, layout.stack);
}

// The offsets in FACTS, with the growth of free-threaded builds.
RuntimeLayout expected_layout(const LayoutFacts& facts, bool free_threaded) {
  RuntimeLayout layout = facts.layout;
  auto& stack = layout.stack;
  layout.free_threaded = free_threaded;
  layout.gil_last_holder = 8;
  layout.gil_locked = 16;
  if (!free_threaded) {
    return layout;
  }
  constexpr auto kGrowth = kFreeThreadedGrowth;
  for (auto* const offset :
       {&stack.file_name, &stack.qualified_name, &stack.line_table, &stack.first_line,
        &stack.byte_code, &stack.type, &stack.item_count, &stack.bytes_data, &stack.text_length,
        &stack.text_state, &stack.ascii_data, &stack.int_digits}) {
    *offset += kGrowth.object_head;
  }
  if (facts.published->thread_byte_code != 0) {
    stack.thread_byte_code = stack.byte_code;
    stack.byte_code += kGrowth.before_byte_code;
    stack.byte_code_index = stack.stack_end + 8;
    stack.owner += kGrowth.before_owner;
  }
  stack.text_form = kTextForm.after(facts.free_threaded_interned);
  layout.gil_last_holder += kGrowth.before_gil_holder;
  layout.gil_locked += kGrowth.before_gil_holder;
  return layout;
}

// PyInterpreterState.gc.collecting; 0 if it is not where this release knows it. Free-threaded
// builds have other fields in between.
std::uint64_t published_collecting(const PublishedOffsets& at, const Words& words,
                                   const RuntimeLayout& layout) {
  const auto collecting = words[at.collector] + words[at.collector_state + 1];
  return !layout.free_threaded && collecting - layout.threads_head == at.collecting_after_threads
             ? collecting
             : 0;
}

struct Field {
  std::string_view name;
  std::uint64_t stated = 0;
  std::uint64_t expected = 0;
};

std::string first_differing(std::span<const Field> fields) {
  for (const auto& [name, stated, expected] : fields) {
    if (stated != expected) {
      return fmt::format("{} at {} instead of {}", name, stated, expected);
    }
  }
  return {};
}

// Empty if the structures have the shape that this release knows: with one word of the offsets
// changed, they do not. The positions of an interpreter's fields vary with the build.
std::string differing(const PublishedOffsets& at, const Words& words, const RuntimeLayout& stated,
                      const RuntimeLayout& expected) {
  const auto& one = stated.stack;
  const auto& other = expected.stack;
  return first_differing(std::to_array<Field>({
      {"interpreters", stated.interpreters_main, stated.finalizing + 32},
      {"an interpreter's id", stated.interpreter_id, stated.next_interpreter + 8},
      {"an interpreter's threads", stated.threads_head,
       stated.next_interpreter + at.threads_after_next},
      {"a thread's previous one", one.previous_thread, 0},
      {"a thread's next one", stated.next_thread, 8},
      {"a thread's interpreter", stated.thread_interpreter, 16},
      {"a thread's native id", one.native_thread_id, stated.thread_id + 8},
      {"the GIL", stated.gil, 16},
      {"the GIL's holder", stated.gil_last_holder, expected.gil_last_holder},
      {"the GIL's lock", stated.gil_locked, expected.gil_locked},
      {"the end of frames", one.frame_size, other.frame_size},
      {"a frame's code", one.executable, other.executable},
      {"a frame's previous one", one.previous, other.previous},
      {"a frame's instruction", one.instruction, other.instruction},
      {"a frame's owner", one.owner, other.owner},
      {"a frame's stack end", one.stack_end, other.stack_end},
      {"a frame's copy of byte code", one.byte_code_index, other.byte_code_index},
      {"a code's file", one.file_name, other.file_name},
      {"a code's name", one.qualified_name, other.qualified_name},
      {"a code's lines", one.line_table, other.line_table},
      {"a code's first line", one.first_line, other.first_line},
      {"a code's byte code", one.byte_code, words[at.code] - 8},  // its size
      {"a code's copies of byte code", one.thread_byte_code,
       stated.free_threaded && at.thread_byte_code != 0 ? one.byte_code - 8 : 0},
      {"an object's type", one.type, other.type},
      {"the size of bytes", one.item_count, other.item_count},
      {"the content of bytes", one.bytes_data, other.bytes_data},
      {"a text's length", one.text_length, other.text_length},
      {"a text's state", one.text_state, other.text_state},
      {"a text's content", one.ascii_data, other.ascii_data},
  }));
}

// What grows from version to version.
std::string differing_in_size(const RuntimeLayout& stated, const RuntimeLayout& expected) {
  return first_differing(std::to_array<Field>({
      {"a code's byte code", stated.stack.byte_code, expected.stack.byte_code},
      {"a thread's id", stated.thread_id, expected.thread_id},
      {"a thread's frame", stated.stack.current_frame, expected.stack.current_frame},
  }));
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
  // The runtime's own fields follow the offsets: three ints before `finalizing`, and padding.
  if (layout.finalizing != at.size + 24) {
    return fmt::format("{} bytes of offsets instead of {}", layout.finalizing - 24, at.size);
  }
  constexpr std::uint64_t kMostThread = 2048;
  constexpr std::uint64_t kMostCode = 512;
  for (const auto& text :
       {bad("finalizing", layout.finalizing, layout.runtime_size),
        bad("main interpreter", layout.interpreters_main, layout.runtime_size),
        bad("pending calls", layout.pending_calls, layout.runtime_size),
        bad("interpreter id", layout.interpreter_id, layout.interpreter_size),
        bad("next interpreter", layout.next_interpreter, layout.interpreter_size),
        bad("thread list", layout.threads_head, layout.interpreter_size),
        bad("eval_frame", layout.eval_frame, layout.interpreter_size),
        bad("byte code", layout.stack.byte_code, kMostCode),
        bad("thread's frame", layout.stack.current_frame, kMostThread),
        bad("thread id", layout.thread_id, kMostThread)}) {
    if (!text.empty()) {
      return text;
    }
  }
  return {};
}

}  // namespace

std::variant<RuntimeLayout, std::string> parse_layout(const Version& version,
                                                      std::span<const std::byte> runtime) {
  const auto* const facts = readable_facts(version);
  if (facts == nullptr) {
    return fmt::format("no layout is known for {}", to_string(version));
  }
  if (!facts->published) {
    return facts->layout;
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
  const auto& at = *facts->published;
  const auto expected = expected_layout(*facts, words[2] != 0);
  RuntimeLayout layout = expected;
  take_published(at, words, layout);
  auto wrong = implausible(at, layout);
  if (wrong.empty()) {
    wrong = differing(at, words, layout, expected);
  }
  if (wrong.empty() && facts == layout_facts(version)) {
    wrong = differing_in_size(layout, expected);
  }
  if (!wrong.empty()) {
    return "the debug offsets are not those of this version: " + wrong;
  }
  if (!unmaps_used_arenas(version)) {
    layout.code_arenas = 0;
  }
  layout.gc_collecting = published_collecting(at, words, layout);
  if (facts != layout_facts(version)) {  // these change with each version
    layout.calls_c = {};
    layout.gc_collecting = 0;
  }
  return layout;
}

}  // namespace pyinject::python
