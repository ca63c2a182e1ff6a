#include "inspect/gil_view.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace pyinject::inspect {

namespace {

constexpr std::size_t kMostStates = 8192;  // of all interpreters together

// The PyThreadState that holds the GIL. One read: the two fields are next to each other.
base::RemoteAddress holder_of(const memory::MemoryReader& memory,
                              const python::RuntimeLayout& layout, base::RemoteAddress gil) {
  constexpr std::size_t kMostBytes = 256;
  const auto first = std::min(layout.gil_locked, layout.gil_last_holder);
  const auto size = std::max(layout.gil_locked, layout.gil_last_holder) + 8 - first;
  std::array<std::byte, kMostBytes> bytes{};
  if (size > bytes.size() || !memory.read(gil + first, std::span{bytes}.first(size))) {
    return {};
  }
  std::int32_t locked = 0;
  std::uint64_t holder = 0;
  std::memcpy(&locked, bytes.data() + (layout.gil_locked - first), sizeof locked);
  std::memcpy(&holder, bytes.data() + (layout.gil_last_holder - first), sizeof holder);
  return base::RemoteAddress{locked == 1 ? holder : 0};
}

}  // namespace

void GilView::update_owners(const python::RuntimeView& view) {
  owners_.clear();
  const auto main = view.main_thread();
  std::size_t left = owners_.needed() ? kMostStates : 0;
  for (const auto interpreter : view.interpreters()) {
    for (const auto& state : view.threads(interpreter, nullptr, left)) {
      --left;
      if (const auto tid = numbers_.ours(memory_, state)) {
        owners_.add(state.thread_id, *tid);
        if (state.thread_id == main) {
          owners_.set_main(*tid);
        }
      }
    }
  }
}

void GilView::update() {
  const python::RuntimeView view{memory_, layout_, runtime_};
  gils_.clear();
  threads_.clear();
  numbers_.update();
  update_owners(view);
  std::size_t left = kMostStates;
  for (const auto interpreter : view.interpreters()) {
    const auto id = memory_.read_value<std::int64_t>(interpreter + layout_.interpreter_id);
    const auto gil =
        memory_.read_pointer(interpreter + layout_.gil).value_or(base::RemoteAddress{});
    const auto holder = gil.is_null() ? gil : holder_of(memory_, layout_, gil);
    const auto states = view.threads(interpreter, nullptr, left);
    left -= states.size();
    if (!gil.is_null() && find(gil) == nullptr) {
      gils_.push_back({.address = gil, .holder = {}});
    }
    for (const auto& state : states) {
      auto tid = numbers_.ours(memory_, state);
      if (!tid) {
        continue;
      }
      if (id != std::int64_t{0}) {
        tid = owners_.owner(memory_, state.address, *tid);
      }
      threads_[*tid].push_back(
          {.interpreter = id.value_or(-1), .python_id = state.thread_id, .gil = gil});
      if (!holder.is_null() && state.address == holder) {
        std::ranges::find(gils_, gil, &Gil::address)->holder = *tid;
      }
    }
    if (left == 0) {
      break;
    }
  }
}

const std::vector<InterpreterOfThread>& GilView::of(base::Tid tid) const {
  static const std::vector<InterpreterOfThread> none;
  const auto found = threads_.find(tid);
  return found == threads_.end() ? none : found->second;
}

const Gil* GilView::find(base::RemoteAddress gil) const {
  const auto found = std::ranges::find(gils_, gil, &Gil::address);
  return found == gils_.end() ? nullptr : &*found;
}

}  // namespace pyinject::inspect
