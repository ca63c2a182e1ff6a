#include "procfs/sysctl.hpp"

#include "base/text.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include <sys/utsname.h>

namespace pyinject::procfs {
namespace {

TEST(Sysctl, HasNoNewline) {
  utsname names{};
  ASSERT_EQ(::uname(&names), 0);
  EXPECT_EQ(read_sysctl("kernel.osrelease"), names.release);
  const auto most = read_sysctl("kernel.pid_max");
  ASSERT_TRUE(most.has_value());
  EXPECT_TRUE(base::parse_number<int>(*most).has_value());
}

TEST(Sysctl, IsUnknownIfTheKernelLacksIt) {
  EXPECT_EQ(read_sysctl("kernel.no_such_setting"), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace pyinject::procfs
