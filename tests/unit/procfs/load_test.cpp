#include "procfs/load.hpp"

#include <gtest/gtest.h>

namespace pyinject::procfs {
namespace {

TEST(RunnableThreads, AreTheFirstNumberOfTheFourthField) {
  EXPECT_EQ(parse_runnable_threads("0.20 0.18 0.12 3/80 11206\n"), 3);
  EXPECT_EQ(parse_runnable_threads("0.20 0.18 0.12"), std::nullopt);
  EXPECT_EQ(parse_runnable_threads("0.20 0.18 0.12 x/80 11206\n"), std::nullopt);
  EXPECT_EQ(parse_runnable_threads(""), std::nullopt);
}

TEST(RunnableThreads, IncludeThisOne) {
  const auto runnable = read_runnable_threads();
  ASSERT_TRUE(runnable.has_value());
  EXPECT_GE(*runnable, 1);
}

}  // namespace
}  // namespace pyinject::procfs
