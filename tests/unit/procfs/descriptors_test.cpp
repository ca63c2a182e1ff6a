#include "procfs/descriptors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;
using testing::Contains;
using testing::Optional;

struct OwnPipe {
  OwnPipe() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }

  base::UniqueFd read_end;
  base::UniqueFd write_end;
};

Pid this_process() { return Pid{::getpid()}; }

TEST(Descriptors, AreListedInOrder) {
  const OwnPipe pipe;
  const auto open = list_descriptors(this_process());
  ASSERT_TRUE(open.has_value());
  EXPECT_TRUE(std::ranges::is_sorted(*open));
  EXPECT_THAT(*open, Contains(pipe.read_end.get()));
  EXPECT_THAT(*open, Contains(pipe.write_end.get()));
}

TEST(Descriptors, AreUnknownForNoProcess) {
  EXPECT_EQ(list_descriptors(Pid{0x7fffffff}), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(read_descriptor_link(Pid{0x7fffffff}, 0), std::nullopt);
  EXPECT_FALSE(stat_descriptor(Pid{0x7fffffff}, 0).has_value());
  EXPECT_FALSE(open_descriptor(Pid{0x7fffffff}, 0, O_PATH).valid());
}

TEST(Descriptors, HaveTheNamesThatTheKernelGivesThem) {
  const OwnPipe pipe;
  const int number = pipe.read_end.get();
  EXPECT_THAT(read_descriptor_link(this_process(), number),
              Optional(testing::StartsWith("pipe:[")));
  EXPECT_EQ(read_own_descriptor_link(number), read_descriptor_link(this_process(), number));
  const base::UniqueFd memory{::memfd_create("a name", MFD_CLOEXEC)};
  EXPECT_THAT(read_own_descriptor_link(memory.get()),
              Optional(testing::Eq("/memfd:a name (deleted)")));
}

TEST(Descriptors, TellWhatKindOfFileTheyAre) {
  OwnPipe pipe;
  const auto facts = stat_descriptor(this_process(), pipe.read_end.get());
  ASSERT_TRUE(facts.has_value());
  EXPECT_TRUE(S_ISFIFO(facts->st_mode));
  const int closed = pipe.write_end.get();
  pipe.write_end.reset();
  EXPECT_FALSE(stat_descriptor(this_process(), closed).has_value());
  EXPECT_EQ(errno, ENOENT);
}

TEST(Descriptors, OpenTheSameFileAgain) {
  const base::UniqueFd memory{::memfd_create("file", MFD_CLOEXEC)};
  ASSERT_EQ(::pwrite(memory.get(), "text", 4, 0), 4);
  const auto again = open_descriptor(this_process(), memory.get(), O_RDONLY);
  ASSERT_TRUE(again.valid());
  EXPECT_NE(again.get(), memory.get());
  EXPECT_EQ(::fcntl(again.get(), F_GETFD), FD_CLOEXEC);
  std::array<char, 8> text{};
  EXPECT_EQ(::pread(again.get(), text.data(), text.size(), 0), 4);
}

TEST(DescriptorPath, IsAPathOfProc) {
  EXPECT_EQ(descriptor_path(Pid{12}, 3), "/proc/12/fd/3");
  EXPECT_EQ(own_descriptor_path(3), "/proc/self/fd/3");
}

}  // namespace
}  // namespace pyinject::procfs
