#include "python/activate/pending_queue.hpp"

#include <fmt/format.h>

#include <cstring>

namespace pyinject::python {

namespace {

// struct _pending_calls, Include/internal/pycore_ceval_state.h (3.12) and pycore_ceval.h (3.13+).
struct Form {
  std::size_t size;
  std::uint32_t slots;
  std::size_t entries;
  std::size_t entry_size;
  std::size_t first;
  std::size_t next;
};
constexpr Form kRing{
    .size = 544, .slots = 32, .entries = 24, .entry_size = 16, .first = 536, .next = 540};
constexpr Form kArray{
    .size = 7232, .slots = 300, .entries = 24, .entry_size = 24, .first = 7224, .next = 7228};

// 3.12
constexpr std::size_t kBusy = 0;
constexpr std::size_t kSemaphorePointer = 8;
constexpr std::size_t kCallsToDo = 16;
// 3.13+
constexpr std::size_t kHandlingThread = 0;
constexpr std::size_t kMutex = 8;
constexpr std::size_t kQueued = 12;
constexpr std::size_t kMost = 16;
constexpr std::size_t kEntryFlags = 16;
constexpr std::int32_t kMainThreadOnly = 1;  // _Py_PENDING_MAINTHREADONLY

const Form& shape(QueueForm form) { return form == QueueForm::kRing32 ? kRing : kArray; }

}  // namespace

std::size_t PendingQueue::size(QueueForm form) { return shape(form).size; }

template <typename Value>
Value PendingQueue::get(std::size_t at) const {
  Value value;
  std::memcpy(&value, bytes_.data() + at, sizeof value);
  return value;
}

template <typename Value>
void PendingQueue::set(std::size_t at, Value value) {
  std::memcpy(bytes_.data() + at, &value, sizeof value);
}

std::variant<PendingQueue, std::string> PendingQueue::parse(QueueForm form,
                                                            std::span<const std::byte> bytes) {
  if (bytes.size() != size(form)) {
    return fmt::format("{} bytes", bytes.size());
  }
  PendingQueue queue{form, bytes};
  if (auto wrong = queue.implausible(); !wrong.empty()) {
    return wrong;
  }
  return queue;
}

std::string PendingQueue::implausible() const {
  const auto first = get<std::uint32_t>(shape(form_).first);
  const auto next = get<std::uint32_t>(shape(form_).next);
  const auto slots = shape(form_).slots;
  if (first >= slots || next >= slots) {
    return fmt::format("first {} and next {} of {}", first, next, slots);
  }
  if (form_ == QueueForm::kRing32) {
    const auto busy = get<std::uint32_t>(kBusy);
    const auto to_do = get<std::uint32_t>(kCallsToDo);
    return busy > 1 || to_do > 1 ? fmt::format("busy {}, calls_to_do {}", busy, to_do)
                                 : std::string{};
  }
  const auto stated = get<std::uint32_t>(kQueued);
  const auto most = get<std::uint32_t>(kMost);
  const auto between = (next + slots - first) % slots;
  // The holder of the lock may have stored one of the two numbers but not yet the other.
  const bool agree = mutex_held() || stated % slots == between;
  if (most == 0 || most > slots || stated > most || !agree) {
    return fmt::format("npending {}, max {}, first {}, next {}", stated, most, first, next);
  }
  return {};
}

base::RemoteAddress PendingQueue::semaphore() const {
  return base::RemoteAddress{get<std::uint64_t>(kSemaphorePointer)};
}

bool PendingQueue::mutex_held() const { return (get<std::uint8_t>(kMutex) & 1U) != 0; }

bool PendingQueue::being_run() const {
  return form_ == QueueForm::kRing32 ? get<std::uint32_t>(kBusy) != 0
                                     : get<std::uint64_t>(kHandlingThread) != 0;
}

std::uint32_t PendingQueue::queued() const {
  if (form_ == QueueForm::kArray) {
    return get<std::uint32_t>(kQueued);  // a full queue starts where it ends
  }
  const auto slots = shape(form_).slots;
  return (get<std::uint32_t>(shape(form_).next) + slots - get<std::uint32_t>(shape(form_).first)) %
         slots;
}

std::size_t PendingQueue::free_slots() const {
  if (form_ == QueueForm::kRing32) {
    return shape(form_).slots - 1 - queued();  // one slot stays free to distinguish full from empty
  }
  return get<std::uint32_t>(kMost) - get<std::uint32_t>(kQueued);
}

// INDEX counts from the first queued entry.
PendingCall PendingQueue::entry(std::uint32_t index) const {
  const auto& form = shape(form_);
  const auto slot = (get<std::uint32_t>(form.first) + index) % form.slots;
  const std::size_t at = form.entries + std::size_t{slot} * form.entry_size;
  return {.function = base::RemoteAddress{get<std::uint64_t>(at)},
          .argument = get<std::uint64_t>(at + 8)};
}

bool PendingQueue::contains(const PendingCall& call) const {
  for (std::uint32_t i = 0; i < queued(); ++i) {
    if (entry(i) == call) {
      return true;
    }
  }
  return false;
}

bool PendingQueue::take_back(const PendingCall& call) {
  if (queued() == 0 || entry(queued() - 1) != call) {
    return false;
  }
  const auto& form = shape(form_);
  set<std::uint32_t>(form.next, (get<std::uint32_t>(form.next) + form.slots - 1) % form.slots);
  if (form_ == QueueForm::kArray) {
    set<std::uint32_t>(kQueued, get<std::uint32_t>(kQueued) - 1);
  }
  return true;
}

void PendingQueue::push(const PendingCall& call) {
  const auto& form = shape(form_);
  const auto next = get<std::uint32_t>(form.next);
  const std::size_t at = form.entries + std::size_t{next} * form.entry_size;
  set<std::uint64_t>(at, call.function.value());
  set<std::uint64_t>(at + 8, call.argument);
  set<std::uint32_t>(form.next, (next + 1) % form.slots);
  if (form_ == QueueForm::kRing32) {
    set<std::uint32_t>(kCallsToDo, 1);
    return;
  }
  set<std::int32_t>(at + kEntryFlags, kMainThreadOnly);
  set<std::uint32_t>(kQueued, get<std::uint32_t>(kQueued) + 1);
}

}  // namespace pyinject::python
