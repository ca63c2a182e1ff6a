#include "inspect/core_arguments.hpp"

#include "unit/memory/fake_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <elf.h>

namespace pyinject::inspect {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kStack = 0x7ffc00000000;
constexpr std::uint64_t kText = kStack + 0x1000;

class CoreArguments : public testing::Test {
 protected:
  void SetUp() override {
    memory_.put_zeros(kStack, 0x2000);
    memory_.put_text(kText, "python3");
    memory_.put_text(kText + 8, "-c");
    memory_.put_text(kText + 11, std::string(100, 'x'));
    memory_.put_text(kText + 200, "HOME=/");
    std::uint64_t at = kStack + 0x800;
    for (const std::uint64_t word : {std::uint64_t{3}, kText, kText + 8, kText + 11,
                                     std::uint64_t{0}, kText + 200, std::uint64_t{0}}) {
      memory_.put(at, word);
      at += 8;
    }
    for (const auto word : auxv_) {
      memory_.put(at, word);
      at += 8;
    }
  }

  test::FakeMemory memory_;
  std::vector<std::uint64_t> auxv_{AT_PAGESZ, 4096,          AT_ENTRY, 0x5000,
                                   AT_RANDOM, kText - 0x100, AT_NULL,  0};
};

TEST_F(CoreArguments, AreThoseOnTheStack) {
  EXPECT_THAT(core_arguments(memory_, auxv_), ElementsAre("python3", "-c", std::string(100, 'x')));
}

TEST_F(CoreArguments, AreFoundAlthoughALoaderHasChangedTheVector) {
  auxv_[3] = 0x6000;
  EXPECT_THAT(core_arguments(memory_, auxv_), ElementsAre("python3", "-c", std::string(100, 'x')));
}

TEST_F(CoreArguments, AreNotFoundWithoutTheVectorOrTheirNumber) {
  EXPECT_THAT(core_arguments(memory_, {}), IsEmpty());
  memory_.put(kStack + 0x800, std::uint64_t{4});
  EXPECT_THAT(core_arguments(memory_, auxv_), IsEmpty());
  memory_.put(kStack + 0x800, std::uint64_t{3});
  auxv_[5] += 8;
  EXPECT_THAT(core_arguments(memory_, auxv_), IsEmpty());
}

TEST_F(CoreArguments, AreNotShownIfOneCannotBeRead) {
  memory_.put(kStack + 0x808, std::uint64_t{0x1000});
  EXPECT_THAT(core_arguments(memory_, auxv_), IsEmpty());
}

}  // namespace
}  // namespace pyinject::inspect
