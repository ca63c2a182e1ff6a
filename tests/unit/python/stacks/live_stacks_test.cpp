// Stacks that change while they are read, as often as the test requests.
#include "python/stacks/live_stacks.hpp"

#include "python/layout/layout_facts.hpp"
#include "unit/memory/fake_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace pyinject::python {
namespace {

using base::RemoteAddress;
using testing::_;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kRuntimeAddress = 0x10000;
constexpr std::uint64_t kInterpreter = 0x20000;
constexpr std::uint64_t kBusyThread = 0x30000;
constexpr std::uint64_t kBusyFrames = 0x40000;
constexpr std::uint64_t kBusyCodes = 0x50000;
constexpr std::uint64_t kTexts = 0x60000;
constexpr std::uint64_t kCodeType = 0x70000;
constexpr std::uint64_t kPage = 0x1000;

RuntimeLayout busy_layout() {
  RuntimeLayout layout;
  layout.interpreters_main = 16;
  layout.next_interpreter = 0;
  layout.threads_head = 8;
  layout.next_thread = 0;
  layout.thread_interpreter = 8;
  layout.thread_id = 16;
  layout.stack = {.native_thread_id = 24,
                  .current_frame = 72,
                  .frame_size = 88,
                  .executable = 0,
                  .executable_tags = 3,
                  .previous = 8,
                  .instruction = 56,
                  .owner = 74,
                  .owners = {.generator = 1, .first_entry = 3},
                  .stack_end = 64,
                  .file_name = 112,
                  .qualified_name = 128,
                  .line_table = 136,
                  .first_line = 68,
                  .byte_code = 208,
                  .type = 8,
                  .item_count = 16,
                  .bytes_data = 32,
                  .text_length = 16,
                  .text_state = 32,
                  .ascii_data = 40,
                  .text_form = kTextForm};
  return layout;
}

// At each of the next COUNT reads of the thread's state, another frame becomes the innermost one.
struct Changes {
  std::size_t count = 0;
  std::uint64_t frame = 0;
  std::uint64_t other = 0;
};

class ChangingMemory : public memory::MemoryReader {
 public:
  ChangingMemory(test::FakeMemory& memory, Changes& changes) : memory_{memory}, changes_{changes} {}

  [[nodiscard]] bool read(RemoteAddress from, std::span<std::byte> into) const override {
    if (changes_.count > 0 && from.value() / kPage == kBusyThread / kPage) {
      --changes_.count;
      memory_.put(kBusyThread + 72, changes_.frame);
      std::swap(changes_.frame, changes_.other);
    }
    return memory_.read(from, into);
  }

 private:
  test::FakeMemory& memory_;
  Changes& changes_;
};

// main() calls work(), which calls inner() or other().
class LiveStacksTest : public testing::Test {
 protected:
  enum Function : std::uint8_t { kMain, kWork, kInner, kOther };
  static std::uint64_t frame(Function function) { return kBusyFrames + 0x100 * function; }

  void SetUp() override {
    for (const auto page :
         {kRuntimeAddress, kInterpreter, kBusyThread, kBusyFrames, kBusyCodes, kTexts, kCodeType}) {
      memory_.put_zeros(page, kPage);
    }
    memory_.put(kRuntimeAddress + 8, kInterpreter);
    memory_.put(kInterpreter + 8, kBusyThread);
    memory_.put(kBusyThread + 8, kInterpreter);
    memory_.put(kBusyThread + 24, static_cast<std::uint64_t>(::gettid()));
    memory_.put(kBusyThread + 72, frame(kInner));
    put_frame(kMain, kBusyFrames + 0x800, "main");
    put_frame(kWork, frame(kMain), "work");
    put_frame(kInner, frame(kWork), "inner");
    put_frame(kOther, frame(kWork), "other");
    memory_.put(kBusyFrames + 0x800 + 74, std::uint8_t{3});  // the entry frame
  }
  void put_frame(Function function, std::uint64_t previous, const std::string& name) {
    const auto at = frame(function);
    const auto code = kBusyCodes + 0x200 * function;
    const auto text = kTexts + 0x100 * function;
    memory_.put(at, code);
    memory_.put(at + 8, previous);
    memory_.put(at + 56, code + 208);
    memory_.put(at + 64, at + 88);
    memory_.put(code + 8, kCodeType);
    memory_.put(code + 16, std::uint64_t{10});
    memory_.put(code + 112, text);
    memory_.put(code + 128, text);
    memory_.put(code + 136, kTexts + 0x800);
    memory_.put(text + 16, std::uint64_t{name.size()});
    memory_.put(text + 32, std::uint32_t{0x64});
    memory_.put_text(text + 40, name);
  }
  void change(std::size_t count) {
    changes_ = {.count = count, .frame = frame(kOther), .other = frame(kInner)};
  }
  // Innermost first.
  [[nodiscard]] std::vector<std::string> names(const ThreadStack& stack) const {
    std::vector<std::string> result;
    for (const auto& each : stack.frames) {
      result.push_back(stacks_.names(each).value_or(CodeNames{}).qualname);
    }
    return result;
  }

  test::FakeMemory memory_;
  Changes changes_;
  LiveStacks stacks_{std::make_unique<ChangingMemory>(memory_, changes_),
                     ThreadNumbers{base::Pid{::getpid()}}, busy_layout(),
                     RemoteAddress{kRuntimeAddress}, RemoteAddress{kCodeType}};
};

TEST_F(LiveStacksTest, ReadAStackThatStays) {
  const auto read = stacks_.read();
  ASSERT_EQ(read.size(), 1U);
  EXPECT_TRUE(read[0].settled);
  EXPECT_THAT(names(read[0]), ElementsAre("inner", "work", "main"));
}

TEST_F(LiveStacksTest, ReadAStackAgainUntilItStays) {
  (void)stacks_.read();
  change(3);
  const auto read = stacks_.read();
  ASSERT_EQ(read.size(), 1U);
  EXPECT_LT(changes_.count, 3U);
  EXPECT_TRUE(read[0].settled);
  EXPECT_THAT(names(read[0]), ElementsAre(_, "work", "main"));
}

TEST_F(LiveStacksTest, KeepTheOuterPartOfAStackThatChangesAtEveryRead) {
  change(1000);
  for (int i = 0; i < 3; ++i) {
    const auto read = stacks_.read();
    ASSERT_EQ(read.size(), 1U);
    EXPECT_FALSE(read[0].settled);
    EXPECT_THAT(names(read[0]), ElementsAre("work", "main"));
    EXPECT_TRUE(read[0].frames.back().outermost);
    EXPECT_THAT(stacks_.unread(), IsEmpty());
  }
  EXPECT_EQ(stacks_.losses().changed, 0U);
  EXPECT_GT(changes_.count, 0U);
}

TEST_F(LiveStacksTest, NameTheThreadsOfWhichNothingCanBeRead) {
  memory_.put(frame(kMain) + 8, std::uint64_t{0});  // no caller
  EXPECT_THAT(stacks_.read(), IsEmpty());
  EXPECT_THAT(stacks_.unread(), ElementsAre(base::Tid{::gettid()}));
  EXPECT_EQ(stacks_.losses().unreadable, 1U);
  memory_.put(frame(kMain) + 8, std::uint64_t{kBusyFrames + 0x800});
  const std::array tids{base::Tid{::gettid()}};
  EXPECT_EQ(stacks_.read(tids).size(), 1U);
  EXPECT_THAT(stacks_.unread(), IsEmpty());
}

}  // namespace
}  // namespace pyinject::python
