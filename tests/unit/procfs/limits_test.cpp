#include "procfs/limits.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include <unistd.h>

namespace pyinject::procfs {
namespace {

TEST(FileSizeLimit, IsTheSoftOne) {
  constexpr auto kHead =
      "Limit                     Soft Limit           Hard Limit           Units     \n";
  EXPECT_EQ(parse_file_size_limit(
                std::string{kHead} +
                "Max file size             4096                 unlimited            bytes     \n"),
            4096U);
  EXPECT_EQ(parse_file_size_limit(
                "Max file size             unlimited            unlimited            bytes     \n"),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_file_size_limit(
                "Max file size             many                 unlimited            bytes     \n"),
            std::nullopt);
  EXPECT_EQ(parse_file_size_limit(kHead), std::nullopt);
  EXPECT_NE(read_file_size_limit(base::Pid{::getpid()}), std::nullopt);
}

}  // namespace
}  // namespace pyinject::procfs
