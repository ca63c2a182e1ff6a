#include "unwind/unwinder.hpp"

#include "elf/call_frame_info.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pyinject::unwind {
namespace {

using testing::ElementsAre;

constexpr ProcessNumber kProcess = 10;
constexpr std::uint64_t kStackBegin = 0x7000;
constexpr std::uint64_t kText = 0x10000;  // up to kTextEnd; mapped from a missing file
constexpr std::uint64_t kTextEnd = 0x20000;
constexpr std::uint64_t kStub = 0x50000;  // the plain trampolines, 16 bytes apart
constexpr std::uint64_t kCall = 6;        // the return address of its call

class NoFiles : public FileFinder {
 public:
  [[nodiscard]] std::vector<base::UniqueFd> candidates(const MappedFile& file) override {
    EXPECT_EQ(file.path, "/gone");
    ++asked;
    return {};
  }
  int asked = 0;
};

class Stubs : public TrampolineFinder {
 public:
  [[nodiscard]] std::optional<Trampoline> find(ProcessNumber pid,
                                               std::uint64_t address) const override {
    return pid == kProcess && address >= kStub && address < kStub + 0x1000 && address % 16 < 11
               ? std::optional{Trampoline{.begin = address / 16 * 16, .size = 11}}
               : std::nullopt;
  }
};

class UnwinderTest : public testing::Test {
 protected:
  UnwinderTest() {
    spaces_.map(0, kProcess,
                {.begin = kText, .end = kTextEnd, .executable = true, .path = "/gone"});
    spaces_.map(0, kProcess,
                {.begin = kStackBegin, .end = kStackBegin + 0x1000, .path = "[stack]"});
    spaces_.complete();
  }

  Unwound unwind(std::uint64_t pc, std::uint64_t fp, const std::vector<std::uint64_t>& words,
                 bool cut = false) {
    Registers registers;
    registers.set(elf::kReturnAddress, pc);
    registers.set(elf::kFramePointer, fp);
    registers.set(elf::kStackPointer, kStackBegin);
    chain_.clear();
    registers_.clear();
    return unwinder_.unwind(
        kProcess, 1, registers,
        {.begin = kStackBegin, .bytes = std::as_bytes(std::span{words}), .cut = cut}, chain_,
        &registers_);
  }

  NoFiles files_;
  Stubs stubs_;
  AddressSpaces spaces_;
  Objects objects_{files_};
  Unwinder unwinder_{spaces_, objects_, stubs_};
  std::vector<std::uint64_t> chain_;
  std::vector<Registers> registers_;
};

// Two functions called through trampolines; the sample is in the second one's trampoline itself.
TEST_F(UnwinderTest, UnwindsThroughTrampolines) {
  const auto unwound = unwind(kStub + 16, 0, {kStub + kCall, 0xdead, 0});
  EXPECT_EQ(unwound.end, EndOfStack::kWhole) << "the program counter is 0";
  EXPECT_THAT(chain_, ElementsAre(kStub + 16, kStub + kCall - 1));
  ASSERT_EQ(registers_.size(), 2U);
  EXPECT_EQ(registers_[0].sp(), kStackBegin);
  EXPECT_EQ(registers_[1].sp(), kStackBegin + 8);
  EXPECT_EQ(unwound.by_frame_pointer, 0U);
}

TEST_F(UnwinderTest, FollowsFramePointersWhereThereIsNothingBetter) {
  const auto unwound =
      unwind(kText + 5, kStackBegin + 8,
             {0xdead, kStackBegin + 24, kText + 0x100, kStackBegin + 40, kText + 0x200, 0, 0});
  EXPECT_THAT(chain_, ElementsAre(kText + 5, kText + 0xff, kText + 0x1ff));
  EXPECT_EQ(unwound.by_frame_pointer, 2U) << "the third is 0, where nothing is mapped";
  EXPECT_EQ(unwound.end, EndOfStack::kNoInformation);
  ASSERT_NE(unwound.file, nullptr);
  EXPECT_EQ(unwound.file->path, "/gone");
  EXPECT_EQ(files_.asked, 1) << "a missing file is not searched again";
}

TEST_F(UnwinderTest, AFramePointerThatLeadsNowhereIsNone) {
  const auto unwound = unwind(kText + 5, kStackBegin, {kStackBegin + 16, 0x666, 0, 0});
  EXPECT_THAT(chain_, ElementsAre(kText + 5));
  EXPECT_EQ(unwound.end, EndOfStack::kNoInformation);
  EXPECT_EQ(unwound.by_frame_pointer, 0U);
}

// As with musl's libc_start_main_stage2(), which keeps the address of argv in that register.
TEST_F(UnwinderTest, AFramePointerThatLeadsToDataIsNone) {
  const auto unwound = unwind(kText + 5, kStackBegin, {0, kStackBegin + 16, 0, 0});
  EXPECT_THAT(chain_, ElementsAre(kText + 5));
  EXPECT_EQ(unwound.end, EndOfStack::kNoInformation);
  ASSERT_NE(unwound.file, nullptr);
  EXPECT_EQ(unwound.file->path, "/gone");
}

TEST_F(UnwinderTest, EndsWhereThereIsNoInformationAndNoFramePointer) {
  auto unwound = unwind(kText + 5, 0, {1, 2, 3});
  EXPECT_EQ(unwound.end, EndOfStack::kNoInformation);
  ASSERT_NE(unwound.file, nullptr);
  unwound = unwind(kTextEnd, 0, {1, 2, 3});
  EXPECT_EQ(unwound.end, EndOfStack::kNoInformation);
  EXPECT_EQ(unwound.file, nullptr) << "nothing is mapped there";
  EXPECT_THAT(chain_, ElementsAre(kTextEnd));
}

// The next word would be beyond the dump.
TEST_F(UnwinderTest, DistinguishesCutFromBroken) {
  const std::vector<std::uint64_t> words{kStub + kCall, 0xdead};
  EXPECT_EQ(unwind(kStub, 0, words, true).end, EndOfStack::kCut);
  EXPECT_THAT(chain_, ElementsAre(kStub, kStub + kCall - 1));
  EXPECT_EQ(unwind(kStub, 0, words, false).end, EndOfStack::kBroken)
      << "the stack's memory ends here";
  EXPECT_EQ(unwind(kStub, 0, {}, true).end, EndOfStack::kCut);
  EXPECT_THAT(chain_, ElementsAre(kStub));
}

TEST_F(UnwinderTest, FindsNoStackAtProgramCounterZero) {
  EXPECT_EQ(unwind(0, 0, {1, 2, 3}).end, EndOfStack::kBroken);
  EXPECT_THAT(chain_, ElementsAre());
}

TEST_F(UnwinderTest, AFrameThatPointsAtItselfEnds) {
  const auto unwound = unwind(kText, kStackBegin + 8, {0, kStackBegin + 8, kText + 1, 0, 0});
  EXPECT_THAT(chain_, ElementsAre(kText, kText));
  EXPECT_EQ(unwound.end, EndOfStack::kNoInformation);
}

TEST_F(UnwinderTest, FramesThatPointDownwardsEnd) {
  const auto unwound =
      unwind(kText, kStackBegin + 16, {kStackBegin + 16, kText + 1, kStackBegin, kText + 2, 0, 0});
  EXPECT_THAT(chain_, ElementsAre(kText, kText + 1));
  EXPECT_EQ(unwound.end, EndOfStack::kNoInformation);
}

TEST_F(UnwinderTest, StacksOfAnyDepthEnd) {
  const std::vector<std::uint64_t> words(100'000, kStub + kCall);
  const auto unwound = unwind(kStub, 0, words, true);
  EXPECT_EQ(unwound.end, EndOfStack::kLimit);
  EXPECT_EQ(chain_.size(), kMostFrames);
}

TEST_F(UnwinderTest, KnowsNothingOfAnotherProcess) {
  Registers registers;
  registers.set(elf::kReturnAddress, kStub);
  registers.set(elf::kStackPointer, kStackBegin);
  const std::vector<std::uint64_t> words(8, kStub);
  const auto unwound =
      unwinder_.unwind(kProcess + 1, 1, registers,
                       {.begin = kStackBegin, .bytes = std::as_bytes(std::span{words})}, chain_);
  EXPECT_EQ(unwound.end, EndOfStack::kNoInformation);
  EXPECT_EQ(unwound.file, nullptr);
}

}  // namespace
}  // namespace pyinject::unwind
