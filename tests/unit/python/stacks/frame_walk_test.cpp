#include "python/stacks/frame_walk.hpp"

#include "python/stacks/page_cache.hpp"
#include "unit/memory/fake_memory.hpp"

#include <gtest/gtest.h>

namespace pyinject::python {
namespace {

using base::RemoteAddress;

constexpr std::uint64_t kThread = 0x1000;
constexpr std::uint8_t kPython = 0;
constexpr std::uint8_t kGenerator = 1;
constexpr std::uint8_t kEntry = 3;

StackLayout layout_314() {
  return {.current_frame = 72,
          .frame_size = 88,
          .executable = 0,
          .executable_tags = 3,
          .previous = 8,
          .instruction = 56,
          .owner = 74,
          .owners = {.generator = kGenerator, .first_entry = kEntry},
          .stack_end = 64};
}

class FrameWalk : public testing::Test {
 protected:
  void current(std::uint64_t frame) { memory_.put(kThread + 72, frame); }
  void frame(std::uint64_t at, std::uint64_t previous, std::uint8_t owner,
             std::uint64_t code = 0xc000) {
    memory_.put_zeros(at, 88);
    memory_.put(at, code);
    memory_.put(at + 8, previous);
    memory_.put(at + 56, code + 0x100);
    memory_.put(at + 64, at + 88);
    memory_.put(at + 74, owner);
  }
  [[nodiscard]] std::optional<RawStack> walk() const {
    return walk_frames(memory_, layout_, RemoteAddress{kThread});
  }

  test::FakeMemory memory_;
  StackLayout layout_ = layout_314();
};

TEST_F(FrameWalk, GroupsEndAtEntryFrames) {
  current(0x2000);
  frame(0x2000, 0x3000, kPython, 0xc001);  // tagged
  frame(0x3000, 0x4000, kGenerator, 0xc100);
  frame(0x4000, 0x5000, kEntry, 1);
  frame(0x5000, 0x6000, 2, 0xc200);
  frame(0x6000, 0x6100, kEntry);
  frame(0x6100, 0, 4);
  const auto stack = walk();
  ASSERT_TRUE(stack);
  EXPECT_TRUE(stack->complete);
  ASSERT_EQ(stack->frames.size(), 3U);
  EXPECT_EQ(stack->frames[0].code, RemoteAddress{0xc000});
  EXPECT_EQ(stack->frames[0].instruction, RemoteAddress{0xc101});
  EXPECT_FALSE(stack->frames[0].outermost);
  EXPECT_TRUE(stack->frames[1].outermost);
  EXPECT_EQ(stack->frames[1].previous, RemoteAddress{0x4000});
  EXPECT_TRUE(stack->frames[2].outermost);
}

// Free-threaded builds: the instruction may be in a copy of the byte code that belongs to a thread.
TEST_F(FrameWalk, FindsInstructionsOfCopiesInTheSharedByteCode) {
  layout_.byte_code = 0x100;
  layout_.thread_byte_code = 0xf8;
  layout_.byte_code_index = 80;
  current(0x2000);
  frame(0x2000, 0x3000, kPython);
  frame(0x3000, 0, kEntry);
  memory_.put(0x2000 + 56, std::uint64_t{0x7012});
  const auto copy = [this](std::int32_t index) {
    memory_.put(0x2000 + 80, index);
    return walk()->frames.at(0).instruction;
  };
  EXPECT_EQ(copy(0), RemoteAddress{0x7012}) << "the shared one";
  EXPECT_EQ(copy(2), RemoteAddress{0x7012}) << "there are no copies in the memory";
  memory_.put(0xc000 + 0xf8, std::uint64_t{0x6000});
  memory_.put(0x6000, std::int64_t{3});
  memory_.put(0x6000 + 8, std::uint64_t{0xc100});
  memory_.put(0x6000 + 16, std::uint64_t{0});
  memory_.put(0x6000 + 24, std::uint64_t{0x7000});
  EXPECT_EQ(copy(2), RemoteAddress{0xc112});
  EXPECT_EQ(copy(3), RemoteAddress{0x7012}) << "there are three";
  EXPECT_EQ(copy(-1), RemoteAddress{0x7012});
}

TEST_F(FrameWalk, AThreadMayHaveNone) {
  EXPECT_FALSE(walk()) << "no thread state";
  current(0);
  ASSERT_TRUE(walk());
  EXPECT_TRUE(walk()->frames.empty());
  current(0x2000);
  frame(0x2000, 0, kEntry);
  ASSERT_TRUE(walk());
  EXPECT_TRUE(walk()->frames.empty());
}

TEST_F(FrameWalk, GoesThroughTheFrameOfCIn312) {
  layout_.frame_in_cframe = true;
  current(0x7000);
  EXPECT_FALSE(walk());
  memory_.put(0x7000, std::uint64_t{0x2000});
  frame(0x2000, 0x3000, kPython);
  frame(0x3000, 0, kEntry);
  ASSERT_TRUE(walk());
  EXPECT_EQ(walk()->frames.size(), 1U);
}

TEST_F(FrameWalk, RefusesWhatIsNoStack) {
  current(0x2000);
  EXPECT_FALSE(walk()) << "unreadable";
  frame(0x2000, 0, kPython);
  EXPECT_FALSE(walk()) << "no entry frame at its end";
  frame(0x2000, 0x3001, kPython);
  frame(0x3001, 0, kEntry);
  EXPECT_FALSE(walk()) << "not aligned";
  frame(0x2000, 0x3000, kPython, 3);
  frame(0x3000, 0, kEntry);
  EXPECT_FALSE(walk()) << "no code";
  frame(0x2000, 0x3000, kPython);
  EXPECT_TRUE(walk());
  frame(0x3000, 0x4000, kPython);
  frame(0x4000, 0, kEntry);
  EXPECT_TRUE(walk());
  memory_.put(0x3000 + 64, std::uint64_t{0});
  EXPECT_FALSE(walk()) << "the caller is itself running";
  memory_.put(0x3000 + 64, std::uint64_t{1});
  memory_.take(0x2000 + 87);
  EXPECT_FALSE(walk()) << "partly unreadable";
}

TEST_F(FrameWalk, RefusesCircles) {
  current(0x2000);
  for (const std::uint64_t length : {1U, 2U, 3U, 7U, 64U, 100U}) {
    for (std::uint64_t i = 0; i < length; ++i) {
      frame(0x2000 + 0x100 * i, 0x2000 + 0x100 * ((i + 1) % length), i % 2 == 0 ? kPython : kEntry);
    }
    EXPECT_FALSE(walk()) << length;
  }
  EXPECT_LT(memory_.reads(), 2000U);
}

TEST_F(FrameWalk, CutsWhatIsTooDeep) {
  layout_.frame_size = 80;
  std::uint64_t at = 0x100000;
  current(at);
  for (std::size_t i = 0; i <= kMostFrames; ++i, at += 80) {
    frame(at, at + 80, kPython);
  }
  frame(at, 0, kEntry);
  const auto stack = walk();
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->frames.size(), kMostFrames);
  EXPECT_FALSE(stack->complete);
  EXPECT_FALSE(stack->frames.back().outermost);
}

TEST_F(FrameWalk, GivesUpOnEntryFramesWithoutEnd) {
  std::uint64_t at = 0x100000;
  current(at);
  for (std::size_t i = 0; i < 4 * kMostFrames; ++i, at += 88) {
    frame(at, at + 88, kEntry);
  }
  frame(at, 0, kEntry);
  EXPECT_FALSE(walk());
}

TEST_F(FrameWalk, TheSameCallMayHaveGotFurther) {
  current(0x2000);
  frame(0x2000, 0x3000, kPython);
  frame(0x3000, 0, kEntry);
  const auto before = walk();
  memory_.put(0x2000 + 56, std::uint64_t{0xc200});
  ASSERT_TRUE(before && walk());
  EXPECT_TRUE(same_calls(*before, *walk()));
  memory_.put(0x2000, std::uint64_t{0xd000});
  EXPECT_FALSE(same_calls(*before, *walk()));
}

TEST_F(FrameWalk, TheOuterPartIsWhatTwoWalksHaveInCommon) {
  current(0x2000);
  frame(0x2000, 0x3000, kPython);
  frame(0x3000, 0x4000, kPython);
  frame(0x4000, 0x5000, kPython);
  frame(0x5000, 0, kEntry);
  const auto before = walk();
  ASSERT_TRUE(before);
  EXPECT_TRUE(same_calls(outer_part(*before, *before), *before));
  frame(0x6000, 0x3000, kPython);
  current(0x6000);
  ASSERT_TRUE(walk());
  const auto outer = outer_part(*before, *walk());
  ASSERT_EQ(outer.frames.size(), 2U);
  EXPECT_EQ(outer.frames[0].address, RemoteAddress{0x3000});
  EXPECT_EQ(outer.frames[1].address, RemoteAddress{0x4000});
  current(0x4000);
  EXPECT_EQ(outer_part(*before, *walk()).frames.size(), 1U);
  auto too_deep = *before;
  too_deep.complete = false;
  EXPECT_TRUE(outer_part(too_deep, *before).frames.empty());
}

TEST(PageCache, ReadsEachPageOnce) {
  test::FakeMemory memory;
  memory.put_zeros(0x1000, 0x2000);
  memory.put(0x1ffc, std::uint64_t{0x1122334455667788});
  PageCache cache{memory};
  EXPECT_EQ(cache.read_value<std::uint64_t>(RemoteAddress{0x1ffc}), 0x1122334455667788U);
  EXPECT_EQ(memory.reads(), 2U);
  EXPECT_TRUE(cache.read_pointer(RemoteAddress{0x2008}));
  EXPECT_EQ(memory.reads(), 2U);
  EXPECT_EQ(cache.used(), (std::vector{RemoteAddress{0x1000}, RemoteAddress{0x2000}}));

  memory.put(0x1ffc, std::uint64_t{5});
  cache.refresh(cache.used());
  EXPECT_EQ(memory.reads(), 4U);
  EXPECT_TRUE(cache.used().empty());
  EXPECT_EQ(cache.read_value<std::uint64_t>(RemoteAddress{0x1ffc}), 5U);
  EXPECT_EQ(memory.reads(), 4U);
}

TEST(PageCache, OmitsWhatCannotBeRead) {
  test::FakeMemory memory;
  memory.put_zeros(0x1000, 0x1000);
  PageCache cache{memory};
  const std::vector pages{RemoteAddress{0x1000}, RemoteAddress{0x2000}};
  cache.refresh(pages);
  EXPECT_TRUE(cache.read_pointer(RemoteAddress{0x1ff8}));
  EXPECT_FALSE(cache.read_pointer(RemoteAddress{0x1ffc}));
  EXPECT_FALSE(cache.read_pointer(RemoteAddress{0x2000}));
  EXPECT_FALSE(cache.read_pointer(RemoteAddress{~std::uint64_t{0} - 3}));
  EXPECT_EQ(cache.used(), std::vector{RemoteAddress{0x1000}});
}

TEST(PageCache, TheSnapshotHasWhatWasRead) {
  test::FakeMemory memory;
  memory.put_zeros(0x1000, 0x5000);
  for (const std::uint64_t at : {0x4008U, 0x1ff0U, 0x2010U, 0x4018U}) {
    memory.put(at, at);
  }
  PageCache cache{memory};
  for (const std::uint64_t at : {0x4008U, 0x1ff0U, 0x2010U, 0x4018U}) {
    EXPECT_EQ(cache.read_value<std::uint64_t>(RemoteAddress{at}), at);
  }
  const auto snapshot = cache.snapshot();
  ASSERT_EQ(snapshot.ranges.size(), 2U);
  EXPECT_EQ(snapshot.ranges[0].begin, RemoteAddress{0x1ff0});
  EXPECT_EQ(snapshot.ranges[0].size, 0x28U);
  EXPECT_EQ(snapshot.ranges[1].begin, RemoteAddress{0x4008});
  EXPECT_EQ(snapshot.ranges[1].size, 0x18U);
  std::vector<std::byte> bytes(0x28 + 0x18);
  ASSERT_TRUE(memory.read(RemoteAddress{0x1ff0}, std::span{bytes}.first(0x28)));
  ASSERT_TRUE(memory.read(RemoteAddress{0x4008}, std::span{bytes}.subspan(0x28)));
  EXPECT_EQ(snapshot.bytes, bytes);
  cache.refresh(cache.used());
  EXPECT_TRUE(cache.snapshot().ranges.empty());
}

TEST(PageCache, HoldsSoManyPages) {
  class : public memory::MemoryReader {
    [[nodiscard]] bool read(RemoteAddress /*from*/, std::span<std::byte> /*into*/) const override {
      return true;
    }
  } memory;
  PageCache cache{memory};
  for (std::uint64_t i = 0; i <= PageCache::kMostPages; ++i) {
    EXPECT_EQ(cache.read_pointer(RemoteAddress{i * PageCache::kPage}).has_value(),
              i < PageCache::kMostPages);
  }
}

}  // namespace
}  // namespace pyinject::python
