#include "python/layout/runtime_view.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <unordered_set>

namespace pyinject::python {

namespace {

constexpr std::size_t kMostInterpreters = 1000;
constexpr std::size_t kThreadFields = 512;  // bytes of PyThreadState that contain the fields read

}  // namespace

bool RuntimeView::initialized() const {
  return memory_.read_value<std::int32_t>(runtime_ + layout_.initialized) == 1;
}

bool RuntimeView::finalizing() const {
  return memory_.read_value<std::uint64_t>(runtime_ + layout_.finalizing) != std::uint64_t{0};
}

std::optional<base::RemoteAddress> RuntimeView::main_interpreter() const {
  const auto interpreter = memory_.read_pointer(runtime_ + layout_.interpreters_main);
  if (!interpreter || interpreter->is_null() ||
      memory_.read_value<std::int64_t>(*interpreter + layout_.interpreter_id) != std::int64_t{0}) {
    return std::nullopt;
  }
  return interpreter;
}

std::vector<base::RemoteAddress> RuntimeView::interpreters() const {
  constexpr int kListAttempts = 4;
  // interpreters.head is the word before interpreters.main, and points to the newest interpreter.
  // The last one is the main one, unless the list changed during the reads.
  const auto main = memory_.read_pointer(runtime_ + layout_.interpreters_main);
  std::vector<base::RemoteAddress> interpreters;
  for (int attempt = 0; attempt < kListAttempts; ++attempt) {
    interpreters.clear();
    std::unordered_set<std::uint64_t> met;  // detects a circular list
    auto interpreter = memory_.read_pointer(runtime_ + (layout_.interpreters_main - 8));
    while (interpreter && !interpreter->is_null() && interpreters.size() < kMostInterpreters &&
           met.insert(interpreter->value()).second) {
      interpreters.push_back(*interpreter);
      interpreter = memory_.read_pointer(*interpreter + layout_.next_interpreter);
    }
    if (interpreters.empty() || interpreters.back() == main) {
      break;
    }
  }
  return interpreters;
}

std::vector<ThreadState> RuntimeView::threads(base::RemoteAddress interpreter, bool* whole,
                                              std::size_t most) const {
  // Their fields are close together. One read per thread: this runs during a stop.
  const auto offsets = {layout_.next_thread, layout_.thread_interpreter, layout_.thread_id,
                        layout_.stack.native_thread_id};
  const std::uint64_t first = std::min(offsets);
  const std::uint64_t span = std::max(offsets) - first;
  std::array<std::byte, kThreadFields> bytes{};
  if (span > bytes.size() - sizeof(std::uint64_t)) {
    return {};
  }
  const auto fields = std::span{bytes}.first(span + sizeof(std::uint64_t));
  const auto field = [&](std::uint64_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, fields.data() + (offset - first), sizeof value);
    return value;
  };
  std::vector<ThreadState> threads;
  auto thread = memory_.read_pointer(interpreter + layout_.threads_head);
  while (thread && !thread->is_null() && threads.size() < most) {
    if (!memory_.read(*thread + first, fields) ||
        field(layout_.thread_interpreter) != interpreter.value()) {
      break;  // the list changed during the read, or is invalid
    }
    threads.push_back({.address = *thread,
                       .thread_id = field(layout_.thread_id),
                       .native_id = field(layout_.stack.native_thread_id)});
    thread = base::RemoteAddress{field(layout_.next_thread)};
  }
  if (whole != nullptr) {
    *whole = thread && thread->is_null();
  }
  return threads;
}

std::optional<std::uint64_t> RuntimeView::main_thread() const {
  return memory_.read_value<std::uint64_t>(runtime_ + layout_.main_thread);
}

bool RuntimeView::uses_gil(base::RemoteAddress interpreter) const {
  if (!layout_.free_threaded) {
    return true;
  }
  // Python/ceval_gil.h: `int enabled` is its first field.
  const auto gil = memory_.read_pointer(interpreter + layout_.gil);
  return gil && !gil->is_null() && memory_.read_value<std::int32_t>(*gil).value_or(0) != 0;
}

bool RuntimeView::holds_gil(base::RemoteAddress interpreter, base::RemoteAddress thread) const {
  const auto gil = memory_.read_pointer(interpreter + layout_.gil);
  if (!gil || gil->is_null()) {
    return true;  // unknown: choose the safe answer
  }
  const auto locked = memory_.read_value<std::int32_t>(*gil + layout_.gil_locked);
  const auto holder = memory_.read_pointer(*gil + layout_.gil_last_holder);
  return locked != 0 && holder == thread;
}

bool RuntimeView::signal_pending(base::RemoteAddress thread) const {
  if (layout_.eval_breaker_per_thread) {
    const auto breaker = memory_.read_value<std::uint64_t>(thread + layout_.eval_breaker);
    return !breaker || (*breaker & layout_.signals_pending_bit) != 0;
  }
  return memory_.read_value<std::int32_t>(runtime_ + layout_.signals_pending) != 0;
}

bool RuntimeView::observed(base::RemoteAddress interpreter, base::RemoteAddress thread) const {
  const auto is_set = [this](base::RemoteAddress at) {
    return memory_.read_value<std::uint64_t>(at).value_or(0) != 0;
  };
  return is_set(interpreter + layout_.audit_hooks) || is_set(thread + layout_.trace_function) ||
         is_set(thread + layout_.profile_function);
}

}  // namespace pyinject::python
