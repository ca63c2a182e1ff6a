#include "procfs/limits.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <string_view>

#include <unistd.h>

namespace pyinject::procfs {
namespace {

std::string limits(const std::string& file_size) {
  return "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max file size             " +
         file_size +
         "                 unlimited            bytes     \n"
         "Max open files            1024                 1048576              files     \n"
         "Max address space         unlimited            unlimited            bytes     \n";
}

TEST(ProcessLimits, AreTheSoftOnes) {
  const auto parsed = parse_limits(limits("4096"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->file_size, 4096U);
  EXPECT_EQ(parsed->open_files, 1024U);
  EXPECT_EQ(parsed->address_space, Limits::kUnlimited);
  EXPECT_EQ(parse_limits(limits("unlimited"))->file_size, Limits::kUnlimited);
  EXPECT_EQ(parse_limits(limits("many")), std::nullopt);
  EXPECT_EQ(parse_limits("Max file size             4096"), std::nullopt);
  EXPECT_NE(read_limits(base::Pid{::getpid()}), std::nullopt);
}

TEST(IgnoredSignals, AreReadFromTheMask) {
  constexpr std::string_view kStatus =
      "Name:\tx\nSigBlk:\t0000000001000000\nSigIgn:\t0000000001001000\nSigCgt:\t0000000000000002\n";
  EXPECT_TRUE(ignores_signal(kStatus, SIGXFSZ));
  EXPECT_TRUE(ignores_signal(kStatus, SIGPIPE));
  EXPECT_FALSE(ignores_signal(kStatus, SIGINT));
  EXPECT_FALSE(ignores_signal("Name:\tx\n", SIGXFSZ));
}

}  // namespace
}  // namespace pyinject::procfs
