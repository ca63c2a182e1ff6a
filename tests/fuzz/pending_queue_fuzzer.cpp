// The interpreter's queue of pending calls: it is read, changed and written back completely.
#include "fuzz/fuzz.hpp"
#include "python/activate/pending_queue.hpp"

#include <vector>

namespace pyinject::fuzz {
namespace {

using base::RemoteAddress;
using python::PendingCall;
using python::PendingQueue;
using python::QueueForm;

std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void run(Input input) {
  const auto form = input.take<std::uint8_t>() % 2 == 0 ? QueueForm::kRing32 : QueueForm::kArray;
  const auto first_call = PendingCall{RemoteAddress{input.take<std::uint64_t>()}, 1};
  const auto last_call = PendingCall{RemoteAddress{input.take<std::uint64_t>()}, 2};
  auto bytes = copy(input.take_bytes(PendingQueue::size(form)));
  // The words after the entries come first in the input: otherwise the fuzzer would rarely reach
  // them.
  bytes.resize(PendingQueue::size(form));
  std::rotate(bytes.begin(), bytes.begin() + 8, bytes.end());
  auto parsed = PendingQueue::parse(form, bytes);
  auto* queue = std::get_if<PendingQueue>(&parsed);
  if (queue == nullptr) {
    require(is_printable(std::get<std::string>(parsed)), "what is wrong is said in plain text");
    return;
  }
  require(std::ranges::equal(queue->bytes(), bytes), "reading changes nothing");
  (void)queue->being_run();
  (void)queue->mutex_held();
  const auto free = queue->free_slots();
  require(free <= 300, "there are not more slots than there is room");
  const bool locked = !queue->lock_is_semaphore() && queue->mutex_held();
  if (free < 2 || locked) {
    return;  // then nothing is written
  }
  queue->push(first_call);
  queue->push(last_call);
  require(queue->free_slots() == free - 2, "two are taken");
  require(queue->contains(first_call) && queue->contains(last_call), "what was pushed is in it");
  const auto written = copy(queue->bytes());
  require(std::holds_alternative<PendingQueue>(PendingQueue::parse(form, written)),
          "what is written is a queue");
  require(!queue->take_back(first_call), "only the last call can be taken back");
  require(queue->take_back(last_call) && queue->take_back(first_call), "what was pushed is there");
  require(queue->free_slots() == free, "all is free that was");
  const auto after = copy(queue->bytes());
  std::size_t changed = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    changed += after[i] == bytes[i] ? 0 : 1;
  }
  require(changed <= 2 * 24 + 1, "nothing but the two free slots and 3.12's flag has changed");
}

}  // namespace pyinject::fuzz
