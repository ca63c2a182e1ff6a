#include "pyinject/procfs/cmdline.hpp"
#include "pyinject/procfs/tasks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace pyinject::procfs {
namespace {

using base::Pid;
using base::Tid;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Tasks, HoldThisThreadAndProcess) {
  EXPECT_THAT(list_tasks(Pid{::getpid()}), Contains(Tid{::gettid()}));
  EXPECT_THAT(list_processes(), Contains(Pid{::getpid()}));
  EXPECT_THAT(list_tasks(Pid{0x7fffffff}), IsEmpty());
}

TEST(Cmdline, KeepsEmptyArguments) {
  EXPECT_THAT(parse_cmdline(std::string_view{"a\0\0b c\0", 7}), ElementsAre("a", "", "b c"));
  EXPECT_THAT(parse_cmdline("a"), ElementsAre("a"));
  EXPECT_THAT(parse_cmdline(""), IsEmpty());
  EXPECT_THAT(*read_cmdline(Pid{::getpid()}), testing::Not(IsEmpty()));
}

TEST(Environ, GivesTheValueOfThatNameOnly) {
  constexpr std::string_view kText{"XA=1\0A=2=3\0AB=4\0E=\0", 20};
  EXPECT_EQ(parse_environ_value(kText, "A"), "2=3");
  EXPECT_EQ(parse_environ_value(kText, "E"), "");
  EXPECT_EQ(parse_environ_value(kText, "B"), std::nullopt);
  EXPECT_EQ(parse_environ_value("", "A"), std::nullopt);
}

TEST(Auxv, StaysTheSameWithoutExec) {
  const auto first = read_auxv(Pid{::getpid()});
  ASSERT_TRUE(first.has_value());
  EXPECT_GE(first->size(), 32U);
  EXPECT_EQ(read_auxv(Pid{::getpid()}), first);
}

}  // namespace
}  // namespace pyinject::procfs
