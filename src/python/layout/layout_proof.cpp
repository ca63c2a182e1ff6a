#include "python/layout/layout_proof.hpp"

#include "python/layout/runtime_view.hpp"

#include <fmt/format.h>

namespace pyinject::python {

namespace {

// A process that runs changes while it is read.
constexpr int kAttempts = 50;
constexpr std::size_t kMostThreadsProved = 64;
constexpr int kMostEntryFrames = 64;

class Proof {
 public:
  Proof(const memory::MemoryReader& memory, const RuntimeLayout& layout,
        base::RemoteAddress runtime, base::RemoteAddress code_type)
      : memory_{memory}, layout_{layout}, view_{memory, layout, runtime}, code_type_{code_type} {}

  // Empty if all fits. Sets runs().
  [[nodiscard]] std::string attempt() {
    runs_ = false;
    const auto main = view_.main_interpreter();
    const auto interpreters = view_.interpreters();
    if (!main || interpreters.empty()) {
      return "there is no main interpreter";
    }
    if (const auto last = interpreters.back();
        last != *main || memory_.read_value<std::int64_t>(last + layout_.interpreter_id) != 0) {
      return "the oldest interpreter is not the main one, with id 0";
    }
    for (const auto interpreter : interpreters) {
      if (auto wrong = look_at_threads(interpreter); !wrong.empty()) {
        return wrong;
      }
    }
    return {};
  }

  [[nodiscard]] bool runs() const { return runs_; }

 private:
  std::string look_at_threads(base::RemoteAddress interpreter) {
    base::RemoteAddress newer;
    for (const auto& thread : view_.threads(interpreter, nullptr, kMostThreadsProved)) {
      if (memory_.read_pointer(thread.address + layout_.thread_interpreter) != interpreter) {
        return "a thread state does not lead back to its interpreter";
      }
      if (memory_.read_pointer(thread.address + layout_.stack.previous_thread) != newer) {
        return "a thread state does not lead back to the one before it";
      }
      newer = thread.address;
      // glibc and musl: the thread pointer points to itself (%fs:0). 0: not started yet.
      const base::RemoteAddress pointer{thread.thread_id};
      if (thread.thread_id != 0 && memory_.read_pointer(pointer) != pointer) {
        return "a thread state's id is not a thread pointer";
      }
      constexpr std::uint64_t kMostThreadNumber = std::uint64_t{1} << 22U;  // PID_MAX_LIMIT
      if (thread.thread_id != 0 &&
          (thread.native_id == 0 || thread.native_id > kMostThreadNumber)) {
        return "a thread state's native id is none";
      }
      if (auto wrong = look_at_frames(thread.address); !wrong.empty()) {
        return wrong;
      }
    }
    return {};
  }

  std::string look_at_frames(base::RemoteAddress thread) {
    const auto& stack = layout_.stack;
    auto frame = memory_.read_pointer(thread + stack.current_frame);
    for (int i = 0; frame && !frame->is_null() && i < kMostEntryFrames; ++i) {
      const auto owner = memory_.read_value<std::uint8_t>(*frame + stack.owner);
      const auto code = memory_.read_pointer(*frame + stack.executable);
      if (!owner || !code) {
        return "a thread's frame cannot be read";
      }
      if (*owner < stack.owners.first_entry) {
        const base::RemoteAddress object{code->value() & ~stack.executable_tags};
        if (memory_.read_pointer(object + stack.type) != code_type_) {
          return "a frame has no code object";
        }
        const auto instruction = memory_.read_pointer(*frame + stack.instruction);
        const auto units = memory_.read_value<std::uint64_t>(object + stack.item_count);
        if (stack.byte_code_index == 0 && instruction && units &&
            instruction->value() - (object + stack.byte_code).value() >= 2 * *units) {
          return "a frame's instruction is not in its code object";
        }
        runs_ = true;
        return {};
      }
      frame = memory_.read_pointer(*frame + stack.previous);
    }
    return {};
  }

  const memory::MemoryReader& memory_;
  const RuntimeLayout& layout_;
  RuntimeView view_;
  base::RemoteAddress code_type_;
  bool runs_ = false;
};

}  // namespace

std::optional<Disproof> disprove(const memory::MemoryReader& memory, const RuntimeLayout& layout,
                                 base::RemoteAddress runtime, base::RemoteAddress code_type) {
  Proof proof{memory, layout, runtime, code_type};
  std::string wrong;
  for (int i = 0; i < kAttempts; ++i) {
    wrong = proof.attempt();
    if (wrong.empty() && proof.runs()) {
      return std::nullopt;
    }
  }
  if (wrong.empty()) {
    return Disproof{.too_early = true, .found = "no thread runs Python code yet"};
  }
  return Disproof{.too_early = false, .found = std::move(wrong)};
}

}  // namespace pyinject::python
