#include "procfs/kernel_symbols.hpp"

#include <gtest/gtest.h>

namespace pyinject::procfs {
namespace {

TEST(KernelSymbols, FindsTheFunctionThatContainsAnAddress) {
  const auto symbols = KernelSymbols::parse(
      "ffffffff81000200 T second\n"
      "ffffffff81000100 t first\n"
      "ffffffff81000180 d data\n"
      "ffffffff81000200 T alias\n"
      "ffffffffc0000000 t inside\t[module]\n"
      "broken\n");
  EXPECT_EQ(symbols.name(0xffffffff810000ff), "");
  EXPECT_EQ(symbols.name(0xffffffff81000100), "first");
  EXPECT_EQ(symbols.name(0xffffffff810001ff), "first");
  EXPECT_EQ(symbols.name(0xffffffff81000234), "second");
  EXPECT_EQ(symbols.name(0xffffffffc0000010), "inside");
}

TEST(KernelSymbols, AreEmptyIfTheKernelHidesTheAddresses) {
  EXPECT_TRUE(KernelSymbols::parse("0000000000000000 T first\n").empty());
  EXPECT_EQ(KernelSymbols{}.name(1), "");
}

}  // namespace
}  // namespace pyinject::procfs
