#include "procfs/executable.hpp"

#include "procfs/maps.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;

TEST(Executable, IsTheFileThatHoldsThisFunction) {
  const Pid self{::getpid()};
  const auto executable = executable_of(self);
  ASSERT_TRUE(executable.has_value());
  const auto maps = read_maps(self);
  ASSERT_TRUE(maps.has_value());
  const auto* const mapping =
      find_mapping(*maps, base::RemoteAddress{reinterpret_cast<std::uintptr_t>(&executable_of)});
  ASSERT_NE(mapping, nullptr);
  struct stat facts {};
  ASSERT_EQ(::stat(mapping->path.c_str(), &facts), 0);
  EXPECT_EQ(*executable, (std::pair{facts.st_dev, facts.st_ino}));
}

TEST(Executable, IsUnknownForNoProcess) {
  EXPECT_EQ(executable_of(Pid{0x7fffffff}), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
}

}  // namespace
}  // namespace pyinject::procfs
