#include "support/untouched.hpp"

#include "procfs/maps.hpp"
#include "support/child_process.hpp"
#include "support/patience.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include <sys/uio.h>
#include <sys/wait.h>

namespace pyinject::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

class UntouchedTest : public testing::Test {
 protected:
  void SetUp() override {
    child_.write("ready\n");
    ASSERT_EQ(child_.read_line(base::Deadline::after(kPatience)), "ready");
  }
  ChildProcess child_{{"cat"}};
};

TEST_F(UntouchedTest, NothingHasHappened) {
  const Untouched before{child_.pid()};
  EXPECT_THAT(before.differences(), testing::IsEmpty());
}

TEST_F(UntouchedTest, AByteIsAnother) {
  const Untouched before{child_.pid()};
  const auto maps = procfs::read_maps(child_.pid());
  const auto stack = std::ranges::find(*maps, "[stack]", &procfs::Mapping::path);
  ASSERT_NE(stack, maps->end());
  char byte = 'x';
  const iovec local{.iov_base = &byte, .iov_len = 1};
  const iovec remote{.iov_base = reinterpret_cast<void*>(stack->end.value() - 1), .iov_len = 1};
  ASSERT_EQ(::process_vm_writev(child_.pid().value(), &local, 1, &remote, 1, 0), 1);
  EXPECT_THAT(before.differences(), Contains(HasSubstr("memory at ")));
}

TEST_F(UntouchedTest, ItWasStoppedForAMoment) {
  const Untouched before{child_.pid()};
  child_.signal(SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child_.pid().value()), &info, WSTOPPED | WNOWAIT), 0);
  child_.signal(SIGCONT);
  EXPECT_THAT(before.differences(), Contains(HasSubstr("ctxt_switches")));
}

}  // namespace
}  // namespace pyinject::test
