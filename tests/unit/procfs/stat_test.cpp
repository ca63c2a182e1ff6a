#include "procfs/stat.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;

constexpr std::string_view kTail =
    " S 1 2 3 4 5 4194560 7 8 9 10 11 12 13 14 20 0 3 0 987654 1 2 18446744073709551615 26 27 28 "
    "29 30 31 32 33 34 35 36 37 17 5 0 1 42\n";

TEST(ParseStat, TakesTheFields) {
  const auto stat = parse_stat("4711 (python3)" + std::string{kTail});
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->pid, Pid{4711});
  EXPECT_EQ(stat->name, "python3");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, Pid{1});
  EXPECT_EQ(stat->flags, 4194560U);
  EXPECT_FALSE(stat->kernel_thread());
  EXPECT_EQ(stat->cpu_ticks, 11U + 12U);
  EXPECT_EQ(stat->waited_ticks, 13U + 14U);
  EXPECT_EQ(stat->threads, 3U);
  EXPECT_EQ(stat->start_time, 987654U);
  EXPECT_EQ(stat->processor, 5);
  EXPECT_FALSE(stat->real_time);
  EXPECT_TRUE(stat->has_memory);
}

TEST(ParseStat, KnowsWhereStackAndEnvironmentAre) {
  std::string text = "4711 (python3)" + std::string{kTail};
  text.pop_back();
  EXPECT_TRUE(parse_stat(text + "\n")->environment_begin.is_null()) << "from older kernels";
  for (int field = 43; field <= 52; ++field) {
    text += " " + std::to_string(field);
  }
  EXPECT_EQ(parse_stat(text + "\n")->stack_begin.value(), 28U);
  EXPECT_EQ(parse_stat(text + "\n")->arguments_begin.value(), 48U);
  EXPECT_EQ(parse_stat(text + "\n")->environment_begin.value(), 50U);
  EXPECT_EQ(parse_stat(text + "\n")->environment_end.value(), 51U);
}

// The memory of a program that is just being executed has no stack yet.
TEST(ParseStat, TellsAnExecFromAnExit) {
  const auto stat_of = [](const std::string& size, const std::string& stack) {
    return *parse_stat("4711 (python3) S 1 2 3 4 5 4194560 7 8 9 10 11 12 13 14 20 0 3 0 987654 " +
                       size + " 2 18446744073709551615 26 27 " + stack +
                       " 29 30 31 32 33 34 35 36 37 17 5 0 1 42\n");
  };
  const base::RemoteAddress stack{28};
  EXPECT_FALSE(is_of_another(stat_of("1", "28"), stack));
  EXPECT_TRUE(is_of_another(stat_of("1", "29"), stack));
  EXPECT_TRUE(is_of_another(stat_of("1", "0"), stack)) << "during the exec";
  EXPECT_FALSE(is_of_another(stat_of("0", "0"), stack)) << "exits";
}

TEST(ParseStat, IsNotDeceivedByTheName) {
  const auto stat = parse_stat("4711 (a) R 1 (b) )" + std::string{kTail});
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->name, "a) R 1 (b) ");
  EXPECT_EQ(stat->state, 'S');
  const auto newline = parse_stat("1 (\n)" + std::string{kTail});
  ASSERT_TRUE(newline.has_value());
  EXPECT_EQ(newline->name, "\n");
}

TEST(ParseStat, KnowsKernelThreads) {
  const auto stat = parse_stat(
      "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 2 0 0 0 0 0 0 0 0 0 "
      "0 0 0 0 0 0 17 1 99 1 0\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_TRUE(stat->kernel_thread());
  EXPECT_TRUE(stat->real_time);
}

TEST(ParseStat, RefusesTruncatedOnes) {
  const std::string whole = "4711 (x)" + std::string{kTail};
  const auto last = whole.find(" 0 1 42");
  for (std::size_t length = 0; length <= last; ++length) {
    EXPECT_FALSE(parse_stat(whole.substr(0, length)).has_value()) << length;
  }
  EXPECT_FALSE(parse_stat(")(").has_value());
  EXPECT_FALSE(parse_stat("1 ()").has_value());
}

TEST(ReadStat, ReadsThisProcess) {
  const auto stat = read_stat(Pid{::getpid()});
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->parent.value(), ::getppid());
  EXPECT_FALSE(stat->kernel_thread());
  const auto id = read_process_id(Pid{::getpid()});
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(id->start_time, stat->start_time);
  EXPECT_FALSE(read_process_id(Pid{0x7fffffff}).has_value());
}

}  // namespace
}  // namespace pyinject::procfs
