#include "python/activate/pending_queue.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace pyinject::python {
namespace {

using base::RemoteAddress;

std::vector<std::byte> bytes_of(
    QueueForm form, std::initializer_list<std::pair<std::size_t, std::uint32_t>> words) {
  std::vector<std::byte> bytes(PendingQueue::size(form));
  for (const auto& [at, value] : words) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  return bytes;
}

PendingQueue parsed(QueueForm form, const std::vector<std::byte>& bytes) {
  auto queue = PendingQueue::parse(form, bytes);
  if (const auto* wrong = std::get_if<std::string>(&queue)) {
    throw std::runtime_error{*wrong};
  }
  return std::get<PendingQueue>(std::move(queue));
}

std::uint32_t word(const PendingQueue& queue, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, queue.bytes().data() + at, sizeof value);
  return value;
}

TEST(PendingQueueArray, AppendsBehindWhatIsQueued) {
  auto queue = parsed(QueueForm::kArray,
                      bytes_of(QueueForm::kArray, {{12, 1}, {16, 32}, {7224, 298}, {7228, 299}}));
  EXPECT_EQ(queue.free_slots(), 31U);
  queue.push({RemoteAddress{0x1000}, 0x2000});
  queue.push({RemoteAddress{0x3000}, 0x4000});
  EXPECT_EQ(word(queue, 7224), 298U) << "the reader's end";
  EXPECT_EQ(word(queue, 7228), 1U) << "wraps at 300";
  EXPECT_EQ(word(queue, 12), 3U);
  EXPECT_EQ(word(queue, 24 + 299 * 24), 0x1000U);
  EXPECT_EQ(word(queue, 24 + 299 * 24 + 8), 0x2000U);
  EXPECT_EQ(word(queue, 24 + 299 * 24 + 16), 1U) << "main thread only";
  EXPECT_EQ(word(queue, 24), 0x3000U);
  EXPECT_TRUE(queue.contains({RemoteAddress{0x3000}, 0x4000}));
  EXPECT_FALSE(queue.contains({RemoteAddress{0x3000}, 0x4001}));
}

TEST(PendingQueue, TakesBackOnlyTheLastCall) {
  for (const auto form : {QueueForm::kArray, QueueForm::kRing32}) {
    auto queue = form == QueueForm::kArray ? parsed(form, bytes_of(form, {{16, 32}}))
                                           : parsed(form, bytes_of(form, {}));
    const PendingCall first{RemoteAddress{0x1000}, 1};
    const PendingCall second{RemoteAddress{0x2000}, 2};
    const auto free = queue.free_slots();
    queue.push(first);
    queue.push(second);
    EXPECT_FALSE(queue.take_back(first));
    EXPECT_TRUE(queue.take_back(second));
    EXPECT_FALSE(queue.take_back(second));
    EXPECT_TRUE(queue.take_back(first));
    EXPECT_EQ(queue.free_slots(), free);
    EXPECT_FALSE(queue.take_back(first)) << "empty";
  }
}

TEST(PendingQueueArray, KnowsWhatIsInAFullOne) {
  // The full queue starts where it ends, like an empty one. CPython fills only 32 of the 300.
  auto queue = parsed(QueueForm::kArray,
                      bytes_of(QueueForm::kArray, {{12, 299}, {16, 300}, {7224, 5}, {7228, 4}}));
  const PendingCall last{RemoteAddress{0x1000}, 1};
  queue.push(last);
  EXPECT_EQ(queue.free_slots(), 0U);
  EXPECT_TRUE(queue.contains(last));
  EXPECT_TRUE(queue.take_back(last));
}

TEST(PendingQueueArray, RefusesWhatCannotBeOne) {
  const auto wrong = [](std::initializer_list<std::pair<std::size_t, std::uint32_t>> words) {
    return std::holds_alternative<std::string>(
        PendingQueue::parse(QueueForm::kArray, bytes_of(QueueForm::kArray, words)));
  };
  EXPECT_TRUE(wrong({})) << "max is 0";
  EXPECT_TRUE(wrong({{16, 301}}));
  EXPECT_TRUE(wrong({{16, 32}, {12, 33}}));
  EXPECT_TRUE(wrong({{16, 32}, {7224, 300}}));
  EXPECT_TRUE(wrong({{16, 32}, {12, 2}, {7228, 1}})) << "npending and the indices differ";
  EXPECT_FALSE(wrong({{16, 32}}));
}

TEST(PendingQueueArray, MayBeHalfWrittenWhileItIsLocked) {
  auto bytes = bytes_of(QueueForm::kArray, {{16, 32}, {12, 18}, {7224, 60}, {7228, 77}});
  EXPECT_TRUE(std::holds_alternative<std::string>(PendingQueue::parse(QueueForm::kArray, bytes)));
  bytes[8] = std::byte{1};
  EXPECT_TRUE(parsed(QueueForm::kArray, bytes).mutex_held());
}

TEST(PendingQueueArray, KnowsWhenItIsInUse) {
  auto bytes = bytes_of(QueueForm::kArray, {{16, 32}});
  EXPECT_FALSE(parsed(QueueForm::kArray, bytes).mutex_held());
  EXPECT_FALSE(parsed(QueueForm::kArray, bytes).being_run());
  bytes[8] = std::byte{1};
  bytes[0] = std::byte{0x80};
  EXPECT_TRUE(parsed(QueueForm::kArray, bytes).mutex_held());
  EXPECT_TRUE(parsed(QueueForm::kArray, bytes).being_run());
}

TEST(PendingQueueRing, KeepsOneSlotFree) {
  auto queue = parsed(QueueForm::kRing32, bytes_of(QueueForm::kRing32, {{536, 3}, {540, 1}}));
  EXPECT_EQ(queue.free_slots(), 1U);
  queue.push({RemoteAddress{0x1000}, 0x2000});
  EXPECT_EQ(queue.free_slots(), 0U);
  EXPECT_EQ(word(queue, 16), 1U) << "calls_to_do";
  EXPECT_EQ(word(queue, 540), 2U);
  EXPECT_EQ(word(queue, 24 + 16), 0x1000U);
}

TEST(PendingQueueRing, RefusesWhatCannotBeOne) {
  for (const auto& [at, value] :
       {std::pair<std::size_t, std::uint32_t>{536, 32}, {540, 32}, {0, 2}, {16, 2}}) {
    EXPECT_TRUE(std::holds_alternative<std::string>(
        PendingQueue::parse(QueueForm::kRing32, bytes_of(QueueForm::kRing32, {{at, value}}))))
        << at;
  }
}

TEST(PendingQueue, RefusesTheWrongSize) {
  EXPECT_TRUE(std::holds_alternative<std::string>(PendingQueue::parse(QueueForm::kArray, {})));
}

}  // namespace
}  // namespace pyinject::python
