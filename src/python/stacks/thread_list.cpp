#include "python/stacks/thread_list.hpp"

#include "python/layout/runtime_view.hpp"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

namespace pyinject::python {

namespace {

// Limits for all interpreters together, including repeated attempts to read their lists.
constexpr std::size_t kMostStates = 8192;
constexpr std::size_t kMostSteps = 4 * kMostStates;
// Limit per thread, which has a state of each interpreter that it works in, or two of the main one.
constexpr std::size_t kMostOfOneThread = 64;

struct Found {
  ThreadState state;
  base::RemoteAddress interpreter;
};

}  // namespace

std::size_t ThreadList::update() {
  constexpr int kAttempts = 4;
  const RuntimeView view{memory_, layout_, runtime_};
  std::unordered_map<std::uint64_t, KnownThread> before;
  for (auto& thread : threads_) {
    before.emplace(thread.address.value(), std::move(thread));
  }
  threads_.clear();
  signs_.clear();
  std::size_t broken = 0;
  std::size_t steps = kMostSteps;
  std::vector<Found> all;
  // Record the signs before reading the lists: threads that start in between are then detected as
  // new.
  watch(runtime_ + (layout_.interpreters_main - 8));
  watch(runtime_ + (layout_.interpreters_main + 8));  // interpreters.next_id
  interpreters_made_ = signs_.back().value;
  for (const auto interpreter : view.interpreters()) {
    watch(interpreter + layout_.threads_head);
    std::vector<ThreadState> states;
    bool whole = false;
    for (int attempt = 0; attempt < kAttempts && !whole && steps != 0; ++attempt) {
      states = view.threads(interpreter, &whole, std::min(steps, kMostStates - all.size()));
      steps -= std::max<std::size_t>(states.size(), 1);
    }
    broken += whole ? 0 : 1;
    for (const auto& state : states) {
      all.push_back({.state = state, .interpreter = interpreter});
    }
    if (steps == 0 || all.size() == kMostStates) {
      break;
    }
  }
  // After the lists: a listed thread has started by now, or has no id yet.
  numbers_.update();
  owners_.clear();
  main_ = view.main_interpreter().value_or(base::RemoteAddress{});
  main_thread_.reset();
  const auto main_thread = view.main_thread();
  for (const auto& [state, interpreter] : all) {
    if (const auto tid = numbers_.ours(memory_, state)) {
      owners_.add(state.thread_id, *tid);
      if (state.thread_id == main_thread) {
        owners_.set_main(*tid);
        main_thread_ = *tid;
      }
    }
  }
  std::unordered_map<std::uint64_t, std::size_t> states_of;  // number of states, by native id
  for (const auto& [state, interpreter] : all) {
    const auto tid = numbers_.ours(memory_, state);
    if (!tid) {
      signs_.push_back(
          {.at = state.address + layout_.stack.native_thread_id, .value = state.native_id});
    } else if (++states_of[state.native_id] <= kMostOfOneThread) {
      auto& thread = threads_.emplace_back(std::move(before[state.address.value()]));
      thread.address = state.address;
      thread.interpreter = interpreter;
      thread.native_id = state.native_id;
      thread.tid = moves(interpreter) ? owners_.owner(memory_, state.address, *tid) : *tid;
    }
  }
  std::ranges::stable_sort(threads_, {}, &KnownThread::tid);
  return broken;
}

void ThreadList::watch(base::RemoteAddress at) {
  signs_.push_back({.at = at, .value = memory_.read_value<std::uint64_t>(at).value_or(0)});
}

bool ThreadList::has_new() const {
  std::vector<std::uint64_t> now(signs_.size());
  std::vector<memory::ReadPiece> pieces;
  pieces.reserve(signs_.size());
  for (std::size_t i = 0; i < signs_.size(); ++i) {
    pieces.push_back(
        {.from = signs_[i].at, .into = std::as_writable_bytes(std::span{now}.subspan(i, 1))});
  }
  memory_.read_each(pieces);
  for (std::size_t i = 0; i < signs_.size(); ++i) {
    if (!pieces[i].done || now[i] != signs_[i].value) {
      return true;
    }
  }
  return signs_.empty() ||
         std::ranges::any_of(threads_, [this](const auto& one) { return moves(one.interpreter); });
}

bool ThreadList::is_still(const memory::MemoryReader& memory, const KnownThread& thread) const {
  return memory.read_pointer(thread.address + layout_.thread_interpreter) == thread.interpreter &&
         memory.read_value<std::uint64_t>(thread.address + layout_.stack.native_thread_id) ==
             thread.native_id &&
         (!moves(thread.interpreter) ||
          owners_.owner(memory, thread.address, thread.tid) == thread.tid);
}

}  // namespace pyinject::python
