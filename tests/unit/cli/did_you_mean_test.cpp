#include "cli/did_you_mean.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace pyinject::cli {
namespace {

constexpr std::array<std::string_view, 6> kWords{"record", "join", "status", "top", "pid", "uid"};

std::string guess(std::string_view word) {
  return std::string{did_you_mean(word, kWords).value_or("none")};
}

TEST(DidYouMean, FindsWhatIsNear) {
  EXPECT_EQ(guess("recrod"), "record");
  EXPECT_EQ(guess("recor"), "record");
  EXPECT_EQ(guess("recordd"), "record");
  EXPECT_EQ(guess("stauts"), "status");
  EXPECT_EQ(guess("jion"), "join");
}

TEST(DidYouMean, FindsWhatBeginsSo) {
  EXPECT_EQ(guess("rec"), "record");
  EXPECT_EQ(guess("sta"), "status");
  EXPECT_EQ(guess("st"), "none");
}

TEST(DidYouMean, DoesNotGuessWildly) {
  EXPECT_EQ(guess(""), "none");
  EXPECT_EQ(guess("x"), "none");
  EXPECT_EQ(guess("lock"), "none");
  EXPECT_EQ(guess("id"), "none") << "pid and uid are equally close";
  EXPECT_EQ(guess(std::string(1000, 'r')), "none");
}

}  // namespace
}  // namespace pyinject::cli
