// Trampolines are recognised by their code.
#include "bpf/native_tables.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace pyinject::bpf {
namespace {

const std::string kPlain{"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", 11};
const std::string kFrame{"\x55\x48\x89\xe5\xff\xd1\x5d\xc3", 8};
const std::string kClosure{"\x48\x83\xec\x10\x4c\x89\x14\x24\x4c\x8b\x15", 11};
const std::string kEndbr{"\xf3\x0f\x1e\xfa", 4};

std::string table_of(std::string one, std::size_t each) {
  one.resize(each, '\0');
  std::string all;
  while (all.size() < 576) {
    all += one;
  }
  return all;
}

std::optional<native_mapping> recognise(const std::string& code) {
  return recognise_trampolines(std::as_bytes(std::span{code}));
}

TEST(RecogniseTrampolines, FindsThoseOfPython313) {
  const auto found = recognise(table_of(kPlain, 16));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->place, 16U);
}

TEST(RecogniseTrampolines, FindsThoseOfPython312) {
  const auto found = recognise(table_of(kPlain, 11));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, NATIVE_TRAMPOLINE);
  EXPECT_EQ(found->place, 11U);
  EXPECT_EQ(found->chunks, 11U);
  EXPECT_EQ(found->word, 4U);
  EXPECT_EQ(found->keeps_fp, 0);
}

TEST(RecogniseTrampolines, FindsThoseOfPython314WithBranchProtection) {
  const auto found = recognise(table_of(kEndbr + kFrame, 32));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, NATIVE_TRAMPOLINE);
  EXPECT_EQ(found->place, 32U);
  EXPECT_EQ(found->chunks, 12U);
  EXPECT_EQ(found->word, 5U);
  EXPECT_EQ(found->keeps_fp, 1);
}

TEST(RecogniseTrampolines, FindsThoseOfLibffi) {
  const auto found = recognise(table_of(kEndbr + kClosure, 40));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, NATIVE_CLOSURE);
  EXPECT_EQ(found->place, 40U);
  EXPECT_EQ(found->word, 8U);
}

TEST(RecogniseTrampolines, FindsNoOthers) {
  EXPECT_FALSE(recognise(""));
  EXPECT_FALSE(recognise(kPlain));  // alone, it may be anything
  EXPECT_FALSE(recognise(table_of("\x55\x48\x89\xe5\x90", 16)));
}

}  // namespace
}  // namespace pyinject::bpf
