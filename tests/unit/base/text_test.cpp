#include "base/text.hpp"

#include <gtest/gtest.h>

namespace pyinject::base {
namespace {

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(parse_number<int>("42"), 42);
  EXPECT_EQ(parse_number<int>("-1"), -1);
  EXPECT_EQ(parse_number<unsigned>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<int>("42 "), std::nullopt);
  EXPECT_EQ(parse_number<int>(" 42"), std::nullopt);
  EXPECT_EQ(parse_number<int>(""), std::nullopt);
  EXPECT_EQ(parse_number<int>("4294967296"), std::nullopt);
  EXPECT_EQ(parse_number<unsigned>("ff", 16), 255U);
}

TEST(Split, KeepsEmptyPieces) {
  EXPECT_EQ(split("1,,2", ','), (std::vector<std::string_view>{"1", "", "2"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Printable, MakesControlCharactersVisible) {
  EXPECT_EQ(printable("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "C1 control characters steer terminals too";
  EXPECT_EQ(printable("a\u202eb\u2067\u200b\u2028\U000e0041"),
            "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa7\\xe2\\x80\\x8b\\xe2\\x80\\xa8\\xf3\\xa0\\x81\\x81")
      << "as do marks of direction";
  EXPECT_EQ(printable("\u65e5\u672c\U0001f40d"), "\u65e5\u672c\U0001f40d");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Counted, HasSingularAndPlural) {
  EXPECT_EQ(counted(0, "thread"), "0 threads");
  EXPECT_EQ(counted(1, "thread"), "1 thread");
  EXPECT_EQ(counted(2, "thread"), "2 threads");
  EXPECT_EQ(counted(1, "process", "processes"), "1 process");
  EXPECT_EQ(counted(2, "process", "processes"), "2 processes");
}

}  // namespace
}  // namespace pyinject::base
