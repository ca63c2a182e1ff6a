#include "bpf/records.hpp"

#include "bpf/sampler_native.h"
#include "bpf/sampler_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::bpf {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Two instructions at line 10, then two at line 12 (Objects/locations.md: short forms).
const std::vector<std::uint8_t> kLines{0x80 | (13U << 3U) | 1U, 0x00, 0x80 | (12U << 3U) | 1U, 0,
                                       0};
constexpr std::uint32_t kByteCode = 200;

template <typename Head>
std::vector<std::byte> bytes_of(const Head& head) {
  std::vector<std::byte> bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

void append(std::vector<std::byte>& bytes, std::string_view text) {
  for (const char letter : text) {
    bytes.push_back(static_cast<std::byte>(letter));
  }
}

std::vector<std::byte> code_record(std::uint32_t number, std::string_view name,
                                   std::string_view file, bool cut = false,
                                   std::uint8_t missing = 0) {
  const bool lines = (missing & SAMPLER_MISSING_LINES) == 0;
  const sampled_name_head head{.kind = SAMPLER_CODE,
                               .pid = 7,
                               .number = number,
                               .first_line = 10,
                               .byte_code = kByteCode,
                               .name_bytes = static_cast<__u32>(name.size()),
                               .file_bytes = static_cast<__u32>(file.size()),
                               .line_bytes = lines ? static_cast<__u32>(kLines.size()) : 0,
                               .name_width = 1,
                               .file_width = 1,
                               .name_cut = static_cast<__u8>(cut ? 1 : 0),
                               .missing = missing,
                               .address = 0,
                               .fingerprint = 0};
  auto bytes = bytes_of(head);
  append(bytes, name);
  append(bytes, file);
  for (const auto byte : kLines) {
    bytes.push_back(static_cast<std::byte>(byte));
  }
  return bytes;
}

std::vector<std::byte> stack_record(const std::vector<sampled_frame>& frames,
                                    std::uint8_t flags = 0, std::uint8_t gil = SAMPLER_GIL_HELD,
                                    std::uint32_t task = 0,
                                    const std::vector<std::uint64_t>& native = {},
                                    std::uint8_t native_end = NATIVE_ROOT,
                                    std::uint8_t does = SAMPLER_DOES_CALL) {
  const sampled_stack_head head{.kind = SAMPLER_STACK,
                                .pid = 7,
                                .tid = 8,
                                .count = static_cast<__u32>(frames.size()),
                                .time = 1234,
                                .address = 0x40,
                                .task = task,
                                .gil = gil,
                                .flags = flags,
                                .native_end = native_end,
                                .does = does,
                                .native_count = static_cast<__u32>(native.size()),
                                .unused_too = 0};
  auto bytes = bytes_of(head);
  const auto add = [&bytes](const auto& value) {
    const auto part = bytes_of(value);
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  std::ranges::for_each(frames, add);
  std::ranges::for_each(native, add);
  return bytes;
}

class RecordsTest : public testing::Test {
 protected:
  std::vector<sample::Code> codes_;
  std::vector<sample::Stack> stacks_;
  Records records_{{.code = [this](sample::Code code) { codes_.push_back(std::move(code)); },
                    .stack = [this](sample::Stack stack) { stacks_.push_back(std::move(stack)); }}};

  // "1@10|": code 1 at line 10, the outermost frame of its group.
  [[nodiscard]] std::vector<std::string> frames() const {
    std::vector<std::string> result;
    for (const auto& frame : stacks_.back().frames) {
      result.push_back(std::to_string(frame.code) + "@" + std::to_string(frame.line) +
                       (frame.outermost ? "|" : ""));
    }
    return result;
  }
};

TEST_F(RecordsTest, ProgramCountersFollowTheFrames) {
  const std::vector<std::uint64_t> native{0x1000, 0x2000, 0x3000};
  auto record =
      stack_record({{.code = 1, .where = 0}}, 0, SAMPLER_GIL_HELD, 0, native, NATIVE_UNMAPPED);
  records_.decode(record);
  ASSERT_THAT(stacks_, SizeIs(1));
  EXPECT_THAT(stacks_[0].frames, SizeIs(1));
  EXPECT_EQ(stacks_[0].native, native);
  EXPECT_EQ(stacks_[0].native_end, sample::NativeEnd::kUnmapped);
  record.resize(record.size() - 9);  // damaged
  records_.decode(record);
  EXPECT_THAT(stacks_[1].native, SizeIs(1));
}

TEST_F(RecordsTest, FramesHaveTheLinesOfTheirInstructions) {
  records_.decode(code_record(1, "Shop.serve", "/srv/shop.py"));
  records_.decode(code_record(2, "<module>", "/srv/shop.py"));
  records_.decode(stack_record({{.code = 1, .where = kByteCode + 4},
                                {.code = 2, .where = SAMPLER_OUTERMOST | (kByteCode + 2)}}));
  ASSERT_THAT(codes_, SizeIs(2));
  EXPECT_EQ(codes_[0].qualname, "Shop.serve");
  EXPECT_EQ(codes_[0].file, "/srv/shop.py");
  EXPECT_EQ(codes_[0].first_line, 10U);
  ASSERT_THAT(stacks_, SizeIs(1));
  EXPECT_EQ(stacks_[0].pid, 7U);
  EXPECT_EQ(stacks_[0].tid, 8U);
  EXPECT_EQ(stacks_[0].address, 0x40U);
  EXPECT_EQ(stacks_[0].time, 1234U);
  EXPECT_EQ(stacks_[0].gil, sample::Gil::kHeld);
  EXPECT_TRUE(stacks_[0].python_thread);
  EXPECT_THAT(frames(), ElementsAre("1@12", "2@10|"));
}

TEST_F(RecordsTest, ACallThatHasNotBegunIsAtItsFirstLine) {
  records_.decode(code_record(1, "f", "f.py"));
  records_.decode(stack_record({{.code = 1, .where = kByteCode - 2}}));
  EXPECT_THAT(frames(), ElementsAre("1@10"));
}

TEST_F(RecordsTest, InstructionsOutsideOfTheCodeHaveNoLine) {
  records_.decode(code_record(1, "f", "f.py"));
  records_.decode(stack_record({{.code = 1, .where = 0}, {.code = 1, .where = SAMPLER_OFFSET}}));
  EXPECT_THAT(frames(), ElementsAre("1@0", "1@0"));
}

TEST_F(RecordsTest, ACodeWhoseNameWasLostIsAFrameAllTheSame) {
  records_.decode(stack_record({{.code = 0, .where = kByteCode}, {.code = 9, .where = kByteCode}}));
  EXPECT_THAT(frames(), ElementsAre("0@0", "0@0"));
}

// Reported again for a forked child, or after the kernel has evicted it.
TEST_F(RecordsTest, RecognisesARepeatedCode) {
  records_.decode(code_record(1, "f", "f.py"));
  records_.decode(code_record(2, "f", "f.py"));
  records_.decode(code_record(3, "f", "g.py"));
  records_.decode(code_record(4, "g", "f.py"));
  records_.decode(stack_record({{.code = 2, .where = kByteCode + 4},
                                {.code = 1, .where = kByteCode},
                                {.code = 3, .where = kByteCode},
                                {.code = 4, .where = kByteCode}}));
  EXPECT_THAT(codes_, SizeIs(3));
  EXPECT_THAT(frames(), ElementsAre("1@12", "1@10", "3@10", "4@10"));
}

TEST_F(RecordsTest, TheNumberOfLostNamesIsGivenToNoCode) {
  records_.decode(code_record(0, "f", "f.py"));
  records_.decode(stack_record({{.code = 0, .where = kByteCode}}));
  EXPECT_THAT(codes_, IsEmpty());
  EXPECT_THAT(frames(), ElementsAre("0@0"));
}

TEST_F(RecordsTest, CompletesAKnownCode) {
  records_.decode(code_record(1, "", "", false, SAMPLER_MISSING_NAME | SAMPLER_MISSING_FILE));
  records_.decode(code_record(2, "f", "f.py", false, SAMPLER_MISSING_LINES));
  records_.decode(code_record(3, "f", "f.py", false, SAMPLER_MISSING_LINES));
  const auto stack = stack_record({{.code = 1, .where = kByteCode + 4},
                                   {.code = 2, .where = kByteCode + 4},
                                   {.code = 3, .where = kByteCode + 4}});
  records_.decode(stack);
  EXPECT_THAT(frames(), ElementsAre("0@0", "2@0", "2@0"));
  records_.decode(code_record(3, "f", "f.py"));
  records_.decode(code_record(2, "f", "f.py"));
  records_.decode(code_record(1, "g", "f.py"));
  records_.decode(stack);
  EXPECT_THAT(frames(), ElementsAre("1@12", "2@12", "2@12"));
}

TEST_F(RecordsTest, CPythonsOwnFrameBelowInitIsLeftOutAndItsGroupEndsWhereItDid) {
  records_.decode(code_record(1, "Shop.__init__", "shop.py"));
  records_.decode(code_record(2, "__init__", "__init__"));
  records_.decode(code_record(3, "main", "shop.py"));
  records_.decode(stack_record({{.code = 1, .where = kByteCode},
                                {.code = 2, .where = SAMPLER_OUTERMOST | kByteCode},
                                {.code = 3, .where = SAMPLER_OUTERMOST | kByteCode}}));
  EXPECT_THAT(frames(), ElementsAre("1@10|", "3@10|"));
}

TEST_F(RecordsTest, FlagsSayWhatTheStackIsNot) {
  records_.decode(stack_record({}, SAMPLER_TRUNCATED | SAMPLER_BY_CLOCK, SAMPLER_GIL_WAITED_FOR));
  records_.decode(stack_record({}, SAMPLER_UNREADABLE, SAMPLER_GIL_NONE));
  records_.decode(stack_record({}, SAMPLER_NO_STATE, 77));
  ASSERT_THAT(stacks_, SizeIs(3));
  EXPECT_TRUE(stacks_[0].truncated);
  EXPECT_TRUE(stacks_[0].by_clock);
  EXPECT_FALSE(stacks_[0].unreadable);
  EXPECT_EQ(stacks_[0].gil, sample::Gil::kWaitedFor);
  EXPECT_TRUE(stacks_[1].unreadable);
  EXPECT_EQ(stacks_[1].gil, sample::Gil::kNone);
  EXPECT_FALSE(stacks_[2].python_thread);
  EXPECT_EQ(stacks_[2].gil, sample::Gil::kUnknown);
}

TEST_F(RecordsTest, TasksHaveTheirNamesOrTheNumberThatCPythonWouldShow) {
  sampled_name_head head{};
  head.kind = SAMPLER_TASK;
  head.number = 5;
  head.name_bytes = 5;
  head.name_width = 1;
  auto named = bytes_of(head);
  append(named, "alpha");
  records_.decode(named);
  head.number = 6;
  head.name_bytes = 0;
  head.name_width = 0;
  head.first_line = 42;
  records_.decode(bytes_of(head));
  records_.decode(stack_record({}, 0, 0, 5));
  records_.decode(stack_record({}, 0, 0, 6));
  records_.decode(stack_record({}, 0, 0, 7));
  ASSERT_THAT(stacks_, SizeIs(3));
  EXPECT_EQ(stacks_[0].task, "alpha");
  EXPECT_EQ(stacks_[1].task, "Task-42");
  EXPECT_EQ(stacks_[2].task, "");
}

TEST(Records, ReportsWakeupsAndPolls) {
  std::vector<Moment> wakeups;
  std::vector<Moment> polls;
  Records records{{.code = [](const sample::Code&) {},
                   .stack = [](const sample::Stack&) {},
                   .wakeup = [&](const Moment& wakeup) { wakeups.push_back(wakeup); },
                   .poll = [&](const Moment& poll) { polls.push_back(poll); }}};
  sampled_moment wake{.kind = SAMPLER_WAKE, .pid = 7, .tid = 8, .waker = 9, .time = 99};
  records.decode(bytes_of(wake));
  ASSERT_THAT(wakeups, SizeIs(1));
  EXPECT_EQ(wakeups[0].pid, 7);
  EXPECT_EQ(wakeups[0].tid, 8);
  EXPECT_EQ(wakeups[0].waker, 9);
  EXPECT_EQ(wakeups[0].time, 99);
  auto cut = bytes_of(wake);
  cut.pop_back();
  records.decode(cut);
  EXPECT_THAT(wakeups, SizeIs(1));
  wake.kind = SAMPLER_POLL;
  records.decode(bytes_of(wake));
  EXPECT_THAT(wakeups, SizeIs(1));
  EXPECT_THAT(polls, SizeIs(1));
}

TEST_F(RecordsTest, ANameThatWasCutSaysSo) {
  records_.decode(code_record(1, "long", "f.py", true));
  EXPECT_EQ(codes_.at(0).qualname, "long...");
}

TEST_F(RecordsTest, OmitsTheMissingEndOfARecord) {
  auto stack = stack_record({{.code = 0, .where = 0}, {.code = 0, .where = 0}});
  stack.resize(stack.size() - 3);
  records_.decode(stack);
  ASSERT_THAT(stacks_, SizeIs(1));
  EXPECT_THAT(stacks_[0].frames, SizeIs(1));
  auto code = code_record(1, "name", "file");
  code.resize(sizeof(sampled_name_head) + 2);
  records_.decode(code);
  EXPECT_EQ(codes_.at(0).qualname, "na");
  EXPECT_EQ(codes_.at(0).file, "");
}

TEST_F(RecordsTest, SkipsWhatIsNoRecord) {
  records_.decode({});
  records_.decode(std::vector<std::byte>(2));
  records_.decode(std::vector<std::byte>(64));
  auto cut = stack_record({});
  cut.resize(sizeof(sampled_stack_head) - 1);
  records_.decode(cut);
  EXPECT_THAT(stacks_, IsEmpty());
  EXPECT_THAT(codes_, IsEmpty());
}

// A process that keeps creating code objects, each with its own name and line table.
TEST(RecordsBudget, KeepsNoMoreNamesThanTheShareOfTheirProcess) {
  constexpr std::uint64_t kBytes = 1'000'000;
  auto budget = std::make_shared<base::RecordingBudget>();
  budget->bytes = base::Budget{kBytes};
  std::vector<std::uint32_t> closed;
  std::size_t codes = 0;
  std::vector<sample::Stack> stacks;
  Records records{{.code = [&](const sample::Code& /*code*/) { ++codes; },
                   .stack = [&](sample::Stack stack) { stacks.push_back(std::move(stack)); }},
                  budget,
                  [&](std::uint32_t pid) { closed.push_back(pid); }};
  const std::uint32_t many = 20'000;
  for (std::uint32_t i = 1; i <= many; ++i) {
    records.decode(code_record(i, "f" + std::to_string(i), "f.py"));
  }
  EXPECT_LE(budget->bytes.spent(), kBytes / 5);
  EXPECT_GT(codes, 100U);
  EXPECT_LT(codes, 2000U);
  EXPECT_THAT(closed, SizeIs(many - codes));
  EXPECT_THAT(closed, testing::Each(7U));
  records.decode(stack_record({{.code = many, .where = kByteCode}}));
  ASSERT_THAT(stacks, SizeIs(1));
  EXPECT_EQ(stacks[0].frames[0].code, 0U) << "a frame without a name";
}

TEST_F(RecordsTest, SayWhatTheInnermostFunctionDoes) {
  records_.decode(stack_record({{.code = 0, .where = SAMPLER_OUTERMOST}}));
  EXPECT_EQ(stacks_.back().does(), sample::Does::kCall);
}

TEST_F(RecordsTest, HaveTheParentsOfAGreenlet) {
  records_.decode(code_record(1, "f", "f.py"));
  const sampled_frame frame{.code = 1, .where = kByteCode};
  records_.decode(stack_record({frame, {.code = SAMPLER_PARENT, .where = 0}, frame, frame}));
  EXPECT_THAT(frames(), ElementsAre("1@10"));
  std::vector<std::uint64_t> parents;
  for (const auto& each : stacks_.back().parents) {
    parents.push_back(each.code);
  }
  EXPECT_THAT(parents, ElementsAre(sample::kGreenlet, 1U, 1U));
  EXPECT_EQ(codes_.back().qualname, "[greenlet]");
}

TEST_F(RecordsTest, HaveAFrameOfTheGarbageCollector) {
  records_.decode(code_record(1, "f", "f.py"));
  for (int i = 0; i < 2; ++i) {
    records_.decode(stack_record({{.code = 1, .where = kByteCode | SAMPLER_OUTERMOST}}, 0,
                                 SAMPLER_GIL_HELD, 0, {}, NATIVE_ROOT,
                                 SAMPLER_DOES_CALL | SAMPLER_COLLECTS));
    EXPECT_THAT(frames(), ElementsAre(std::to_string(sample::kGarbageCollector) + "@0", "1@10|"));
  }
  ASSERT_THAT(codes_, SizeIs(2));
  EXPECT_EQ(codes_.back().qualname, "[gc]");
  EXPECT_EQ(codes_.back().number, sample::kGarbageCollector);
  records_.decode(stack_record({}, 0, SAMPLER_GIL_HELD, 0, {}, NATIVE_ROOT, SAMPLER_COLLECTS));
  EXPECT_THAT(frames(), SizeIs(0)) << "no Python function: a thread of C";
}

}  // namespace
}  // namespace pyinject::bpf
