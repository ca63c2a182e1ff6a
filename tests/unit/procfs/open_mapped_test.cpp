#include "procfs/open_mapped.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;

TEST(StatMappedFile, FindsTheFileThatHoldsThisFunction) {
  const Pid self{::getpid()};
  const auto maps = read_maps(self);
  ASSERT_TRUE(maps.has_value());
  const auto* const mapping =
      find_mapping(*maps, base::RemoteAddress{reinterpret_cast<std::uintptr_t>(&stat_mapped_file)});
  ASSERT_NE(mapping, nullptr);
  const auto facts = stat_mapped_file(self, *mapping);
  if (!facts && (errno == EPERM || errno == EACCES)) {
    GTEST_SKIP() << "needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE";
  }
  ASSERT_TRUE(facts.has_value());
  struct stat named {};
  ASSERT_EQ(::stat(mapping->path.c_str(), &named), 0);
  EXPECT_EQ(facts->st_dev, named.st_dev);
  EXPECT_EQ(facts->st_ino, named.st_ino);
}

TEST(StatMappedFile, FailsForNoMapping) {
  Mapping none;
  none.begin = base::RemoteAddress{0x1000};
  none.end = base::RemoteAddress{0x2000};
  EXPECT_FALSE(stat_mapped_file(Pid{::getpid()}, none).has_value());
}

}  // namespace
}  // namespace pyinject::procfs
