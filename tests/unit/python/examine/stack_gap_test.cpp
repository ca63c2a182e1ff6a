#include "python/examine/stack_gap.hpp"

#include "procfs/cmdline.hpp"
#include "procfs/stat.hpp"
#include "unit/memory/fake_memory.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <elf.h>
#include <unistd.h>

namespace pyinject::python {
namespace {

using base::RemoteAddress;

constexpr std::uint64_t kStackTop = 0x7ffc'0002'0000;
constexpr std::uint64_t kVectors = kStackTop - 0x8000;
constexpr std::uint64_t kRandom = kStackTop - 0x4019;
constexpr std::uint64_t kPlatform = kRandom + 16;
constexpr std::uint64_t kStackGap = kPlatform + 7;  // behind "x86_64"
constexpr std::uint64_t kArgumentTexts = kStackTop - 0x3000;

class StackGap : public testing::Test {
 protected:
  StackGap() { put("x86_64"); }
  void put(const std::string& platform) {
    for (std::size_t i = 0; i < 64; ++i) {
      memory_.put(kPlatform + i, i < platform.size() ? platform[i] : '\0');
    }
  }
  [[nodiscard]] std::optional<UnusedMemory> gap() const {
    return stack_gap(memory_, maps_, stack_);
  }

  test::FakeMemory memory_;
  std::vector<procfs::Mapping> maps_{{.begin = RemoteAddress{kStackTop - 0x21000},
                                      .end = RemoteAddress{kStackTop},
                                      .readable = true,
                                      .writable = true,
                                      .path = "[stack]"}};
  FirstStack stack_{.random = RemoteAddress{kRandom},
                    .platform = RemoteAddress{kPlatform},
                    .vectors = RemoteAddress{kVectors},
                    .arguments = RemoteAddress{kArgumentTexts}};
};

TEST_F(StackGap, IsBetweenThePlatformsNameAndTheArguments) {
  const auto found = gap();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->begin.value(), kStackGap);
  EXPECT_EQ(found->size, kArgumentTexts - kStackGap);
}

TEST_F(StackGap, MayBeEmpty) {
  stack_.arguments = RemoteAddress{kStackGap};
  ASSERT_TRUE(gap().has_value());
  EXPECT_EQ(gap()->size, 0U);
}

TEST_F(StackGap, NeedsANameThatEnds) {
  put(std::string(64, 'x'));
  EXPECT_FALSE(gap().has_value());
  put("");
  EXPECT_FALSE(gap().has_value());
  stack_.arguments = RemoteAddress{kPlatform + 3};
  put("x86_64");
  EXPECT_FALSE(gap().has_value());
}

// A program has changed what the kernel knows (PR_SET_MM), or another kernel made the stack.
TEST_F(StackGap, NeedsTheKernelsOrder) {
  const auto good = stack_;
  stack_.arguments = RemoteAddress{kVectors};
  EXPECT_FALSE(gap().has_value());
  stack_ = good;
  stack_.arguments = RemoteAddress{kPlatform + 16384};
  EXPECT_FALSE(gap().has_value()) << "more than the kernel leaves";
  stack_ = good;
  stack_.random = RemoteAddress{kPlatform + 7};
  EXPECT_FALSE(gap().has_value());
  stack_ = good;
  stack_.vectors = RemoteAddress{kPlatform};
  EXPECT_FALSE(gap().has_value());
}

TEST_F(StackGap, NeedsAWritablePrivateStack) {
  const auto good = maps_[0];
  maps_[0].path = "[heap]";
  EXPECT_FALSE(gap().has_value());
  maps_[0] = good;
  maps_[0].writable = false;
  EXPECT_FALSE(gap().has_value());
  maps_[0] = good;
  maps_[0].end = RemoteAddress{kArgumentTexts};
  EXPECT_FALSE(gap().has_value());
  maps_.clear();
  EXPECT_FALSE(gap().has_value());
}

std::string auxv(const std::vector<std::uint64_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::uint64_t)};
}

TEST(FirstStackTest, NeedsBothEntriesOfTheVector) {
  const RemoteAddress vectors{kVectors};
  const RemoteAddress arguments{kArgumentTexts};
  const auto whole = auxv({AT_PAGESZ, 4096, AT_RANDOM, kRandom, AT_PLATFORM, kPlatform, 0, 0});
  const auto stack = parse_first_stack(whole, vectors, arguments);
  ASSERT_TRUE(stack.has_value());
  EXPECT_EQ(stack->random.value(), kRandom);
  EXPECT_EQ(stack->platform.value(), kPlatform);
  EXPECT_FALSE(parse_first_stack(auxv({AT_RANDOM, kRandom, 0, 0}), vectors, arguments).has_value());
  EXPECT_FALSE(parse_first_stack(auxv({AT_PLATFORM, kPlatform}), vectors, arguments).has_value());
  EXPECT_FALSE(parse_first_stack(whole, {}, arguments).has_value());
  EXPECT_FALSE(parse_first_stack(whole, vectors, {}).has_value());
  EXPECT_FALSE(parse_first_stack({}, vectors, arguments).has_value());
}

// This kernel leaves the gap, and nobody has written to it.
TEST(FirstStackTest, IsThatOfThisProcess) {
  const base::Pid self{::getpid()};
  const auto stat = procfs::read_stat(self);
  const auto vector = procfs::read_auxv(self);
  ASSERT_TRUE(stat && vector);
  const auto stack = parse_first_stack(*vector, stat->stack_begin, stat->arguments_begin);
  ASSERT_TRUE(stack.has_value());
  const memory::ProcessMemory memory{self};
  const auto found = stack_gap(memory, procfs::read_maps(self).value(), *stack);
  ASSERT_TRUE(found.has_value());
  std::vector<char> bytes(found->size);
  ASSERT_TRUE(memory.read(found->begin, std::as_writable_bytes(std::span{bytes})));
  EXPECT_EQ(std::string_view(bytes.data(), bytes.size()), std::string(bytes.size(), '\0'));
}

}  // namespace
}  // namespace pyinject::python
