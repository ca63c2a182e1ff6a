#include "python/examine/code_arenas.hpp"

#include "unit/memory/fake_memory.hpp"

#include <gtest/gtest.h>

namespace pyinject::python {
namespace {

using base::RemoteAddress;

constexpr std::uint64_t kHead = 0x1010;
constexpr std::uint64_t kRecord = 0x2000;
constexpr std::uint64_t kCode = 0x10000;
constexpr std::uint64_t kBytes = 0x10000;

class CodeArenas : public testing::Test {
 protected:
  CodeArenas() {
    memory_.put(kHead - 16, std::uint64_t{1});
    memory_.put(kHead - 8, std::uint64_t{0});
    memory_.put(kHead, kRecord);
    arena(kRecord, kCode, kBytes, 0);
  }
  void arena(std::uint64_t at, std::uint64_t code, std::uint64_t size, std::uint64_t previous) {
    constexpr std::uint64_t kUsed = 320;
    std::uint64_t to = at;
    for (const auto word :
         {code, code + kUsed, size, kBytes - kUsed, std::uint64_t{16}, previous}) {
      memory_.put(to, word);
      to += sizeof word;
    }
  }
  // The number of arenas; -1: not a valid list.
  [[nodiscard]] int count() const {
    const auto found = read_code_arenas(memory_, RemoteAddress{kHead}, maps_);
    const auto* const arenas = std::get_if<std::vector<CodeArena>>(&found);
    return arenas == nullptr ? -1 : static_cast<int>(arenas->size());
  }

  test::FakeMemory memory_;
  std::vector<procfs::Mapping> maps_{{.begin = RemoteAddress{0x2000},
                                      .end = RemoteAddress{0x4000},
                                      .readable = true,
                                      .writable = true,
                                      .path = "[heap]"},
                                     {.begin = RemoteAddress{kCode},
                                      .end = RemoteAddress{kCode + 2 * kBytes},
                                      .readable = true,
                                      .executable = true,
                                      .path = {}}};
};

TEST_F(CodeArenas, AreEmptyBeforeTheFirst) {
  memory_.put(kHead, std::uint64_t{0});
  memory_.put(kHead - 8, ~std::uint64_t{0});
  EXPECT_EQ(count(), 0);
  EXPECT_EQ(has_new_arena(memory_, RemoteAddress{kHead}), false);
}

TEST_F(CodeArenas, AreFollowedToTheOldest) {
  arena(kRecord, kCode, kBytes, kRecord + 0x100);
  arena(kRecord + 0x100, kCode + kBytes, kBytes, 0);
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(has_new_arena(memory_, RemoteAddress{kHead}), true);
}

TEST_F(CodeArenas, KnowWhichArePinned) {
  arena(kRecord, kCode, ~std::uint64_t{0}, 0);
  const auto found = read_code_arenas(memory_, RemoteAddress{kHead}, maps_);
  EXPECT_TRUE(std::get<std::vector<CodeArena>>(found).at(0).pinned);
  EXPECT_EQ(has_new_arena(memory_, RemoteAddress{kHead}), false);
}

TEST_F(CodeArenas, RefuseAListWithoutAnEnd) {
  arena(kRecord, kCode, kBytes, kRecord);
  EXPECT_EQ(count(), -1);
}

TEST_F(CodeArenas, RefuseAPointerToNothing) {
  arena(kRecord, kCode, kBytes, 0x3000);
  EXPECT_EQ(count(), -1);
  memory_.put(kHead, std::uint64_t{8});
  EXPECT_EQ(count(), -1);
}

TEST_F(CodeArenas, RefuseASizeThatIsNotTheSum) {
  arena(kRecord, kCode, 0, 0);
  EXPECT_EQ(count(), -1);
  arena(kRecord, kCode, 2 * kBytes, 0);
  EXPECT_EQ(count(), -1);
}

TEST_F(CodeArenas, RefuseMemoryThatIsNoAnonymousCode) {
  for (const bool in_file : {false, true}) {
    auto& code = maps_.back();
    code.writable = !in_file;
    code.inode = in_file ? 7 : 0;
    EXPECT_EQ(count(), -1);
  }
}

TEST_F(CodeArenas, RefuseMemoryThatEndsEarly) {
  maps_.back().end = RemoteAddress{kCode + kBytes / 2};
  EXPECT_EQ(count(), -1);
}

TEST_F(CodeArenas, RefuseAStateThatIsNone) {
  memory_.put(kHead, std::uint64_t{0});
  memory_.put(kHead - 8, std::uint64_t{1000});
  EXPECT_EQ(count(), -1);
}

}  // namespace
}  // namespace pyinject::python
