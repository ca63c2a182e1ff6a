#include "procfs/blocked_task.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::procfs {
namespace {

TEST(ParseKernelStack, TakesFunctionsAndTheirPlaces) {
  const auto frames = parse_kernel_stack(
      "[<0>] futex_do_wait+0x46/0x90\n"
      "[<0>] ext4_wait+0x1/0x20 [ext4]\n"
      "[<0>] 0xffffffffffffffff\n"
      "[<0>] f+0x/0x90\n"
      "nothing+0x1/0x2\n");
  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].name, "futex_do_wait");
  EXPECT_EQ(frames[0].offset, 0x46U);
  EXPECT_EQ(frames[0].size, 0x90U);
  EXPECT_EQ(frames[1].name, "ext4_wait");
}

TEST(ParseBlockedCall, TakesNumberAndArguments) {
  const auto call = parse_blocked_call("0 0x3 0x7ffe 0x1000 0x0 0x0 0xff 0x7ffd95e7cbc0 0x7fde\n");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->number, 0);
  EXPECT_EQ(call->arguments, (std::array<std::uint64_t, 6>{3, 0x7ffe, 0x1000, 0, 0, 0xff}));
}

TEST(ParseBlockedCall, RefusesWhatIsNoSystemCall) {
  EXPECT_FALSE(parse_blocked_call("running\n"));
  EXPECT_FALSE(parse_blocked_call("-1 0x7ffd95e7cbc0 0x7fde908a3f16\n"));
  EXPECT_FALSE(parse_blocked_call("202 0x3 0x4"));
  EXPECT_FALSE(parse_blocked_call("202 3 4 5 6 7 8 9 10"));
  EXPECT_FALSE(parse_blocked_call(""));
}

TEST(ContinuedCall, IsToldByTheKernelFunctions) {
  const auto number = [](std::uint64_t argument, const std::vector<std::string>& kernel) {
    return continued_call({.number = SYS_restart_syscall, .arguments = {argument}}, kernel).number;
  };
  EXPECT_EQ(number(0x7ffd95e7cbc0, {"futex_do_wait", "futex_wait_restart"}), SYS_futex);
  EXPECT_EQ(number(0x7ffd95e7cbc0, {"poll_schedule_timeout.constprop.0"}), SYS_poll);
  EXPECT_EQ(number(1, {"hrtimer_nanosleep"}), SYS_clock_nanosleep);
  EXPECT_EQ(number(0x7ffd95e7cbc0, {"do_nanosleep"}), SYS_nanosleep);
  EXPECT_EQ(number(1, {}), SYS_restart_syscall);
  // Without kernel functions: a task that was on its way into the call.
  const auto by_arguments = [](std::array<std::uint64_t, 6> arguments) {
    return continued_call({.number = SYS_restart_syscall, .arguments = arguments}, {}).number;
  };
  constexpr std::uint64_t kAddress = 0x7ffd95e7cbc0;
  EXPECT_EQ(by_arguments({kAddress, 0x189, 0, kAddress, 0, 0xffffffff}), SYS_futex);
  EXPECT_EQ(by_arguments({kAddress, 0x80, 2, kAddress}), SYS_futex);
  EXPECT_EQ(by_arguments({kAddress, 0x189, 0, 0}), SYS_restart_syscall) << "no limit";
  EXPECT_EQ(by_arguments({1, 0, kAddress, kAddress}), SYS_clock_nanosleep);
  EXPECT_EQ(by_arguments({kAddress, 2, 1000, 0}), SYS_poll);
  EXPECT_EQ(by_arguments({kAddress, 0, 1000, 0}), SYS_restart_syscall) << "poll or nanosleep";
  EXPECT_EQ(by_arguments({kAddress, 9, 1000, kAddress}), SYS_restart_syscall) << "poll or futex";
  EXPECT_EQ(continued_call({.number = SYS_read, .arguments = {}}, std::vector<std::string>{"poll"})
                .number,
            SYS_read);
}

TEST(ParseKernelStack, HasNoMoreThanTheKernelWouldSay) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "[<0>] f+0x1/0x2\n";
  }
  EXPECT_EQ(parse_kernel_stack(text).size(), 64U);
  EXPECT_TRUE(parse_kernel_stack("").empty());
}

TEST(ParseFutexWait, TakesOnlyWaits) {
  const std::string rest = " 0x2 0x0 0x0 0xffffffff 0x7ffd95e7cbc0 0x7fde908a3f16\n";
  const std::string futex = std::to_string(SYS_futex);
  EXPECT_EQ(parse_futex_wait(futex + " 0x55ed56771810 0x189" + rest), 0x55ed56771810U);
  EXPECT_EQ(parse_futex_wait(futex + " 0x55ed56771810 0x80" + rest), 0x55ed56771810U);
  EXPECT_EQ(parse_futex_wait(futex + " 0x55ed56771810 0x0" + rest), 0x55ed56771810U);
  EXPECT_FALSE(parse_futex_wait(futex + " 0x55ed56771810 0x81" + rest)) << "FUTEX_WAKE";
  EXPECT_FALSE(parse_futex_wait("0 0x55ed56771810 0x189" + rest));
  EXPECT_FALSE(parse_futex_wait(futex + " 0x55ed56771810"));
  const std::string continued = std::to_string(SYS_restart_syscall);
  EXPECT_EQ(parse_futex_wait(continued + " 0x55ed56771810 0x189 0x0 0x7ffd 0x0 0x0 0x1 0x2\n"),
            0x55ed56771810U);
  EXPECT_FALSE(parse_futex_wait(continued + " 0x55ed56771810 0x189 0x0 0x0 0x0 0x0 0x1 0x2\n"))
      << "without a time limit";
  EXPECT_FALSE(parse_futex_wait("running\n"));
  EXPECT_FALSE(parse_futex_wait(""));
}

TEST(KernelAddresses, AreThoseOfTheFunctionWithTheSameSize) {
  KernelFrame twice{.name = "twice", .offset = 4, .size = 0x30};
  KernelFrame module{.name = "in_module", .offset = 1, .size = 0x10};
  KernelFrame last{.name = "last", .offset = 2, .size = 0x10};
  KernelFrame unknown{.name = "unknown", .offset = 2, .size = 0x10};
  KernelFrame channel{.name = "twice"};
  find_kernel_addresses(
      "ffffffff81000000 t twice\n"
      "ffffffff81000010 T other\n"
      "ffffffff81000020 t twice\n"
      "ffffffff81000020 t alias\n"
      "ffffffff81000050 T last\n"
      "ffffffffc0000000 t in_module\t[ext4]\n"
      "ffffffffc0000010 t behind\t[ext4]\n",
      {&twice, &module, &last, &unknown, &channel});
  EXPECT_EQ(twice.address, 0xffffffff81000024U);
  EXPECT_EQ(module.address, 0xffffffffc0000001U);
  EXPECT_EQ(last.address, 0xffffffff81000052U);
  EXPECT_EQ(unknown.address, 0U);
  EXPECT_EQ(channel.address, 0U);
}

TEST(KernelAddresses, AreNotKnownWhereTheKernelHidesThem) {
  KernelFrame frame{.name = "f", .offset = 4, .size = 0x30};
  find_kernel_addresses("0000000000000000 t f\n0000000000000000 t g\nnonsense\n", {&frame});
  EXPECT_EQ(frame.address, 0U);
}

TEST(ParseUserPlace, TakesTheLastTwoNumbers) {
  const auto place = parse_user_place("202 0x1 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd0 0x7fde9\n");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->stack_pointer, 0x7ffd0U);
  EXPECT_EQ(place->program_counter, 0x7fde9U);
  EXPECT_TRUE(parse_user_place("-1 0x7ffd0 0x7fde9\n").has_value());
  EXPECT_FALSE(parse_user_place("running\n").has_value());
  EXPECT_FALSE(parse_user_place("").has_value());
}

TEST(ParseSystemCall, TakesTheFirstNumber) {
  EXPECT_EQ(parse_system_call("202 0x1 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd0 0x7fde9\n"), 202);
  EXPECT_EQ(parse_system_call("0 0x3 0x1 0x1 0x0 0x0 0x0 0x7ffd0 0x7fde9\n"), 0);
  EXPECT_EQ(parse_system_call("-1 0x7ffd0 0x7fde9\n"), std::nullopt);
  EXPECT_EQ(parse_system_call("running\n"), std::nullopt);
  EXPECT_EQ(parse_system_call(""), std::nullopt);
}

TEST(ReadSystemCall, ReturnsTheReadOfThisThread) {
  const base::Pid self{::getpid()};
  const auto text = read_system_call(self, base::Tid{::gettid()});
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(parse_system_call(*text), SYS_read);
  EXPECT_EQ(read_system_call(self, base::Tid{1}), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
}

// A child that waits in read(2) until this process releases it.
TEST(ReadSystemCall, ReturnsTheCallOfABlockedChild) {
  std::array<int, 2> ends{-1, -1};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    char byte = 0;
    ::_exit(static_cast<int>(::read(ends[0], &byte, 1)));
  }
  const base::Pid pid{child};
  std::optional<std::string> text;
  do {
    text = read_system_call(pid, base::Tid{child});
  } while (text && parse_system_call(*text) != SYS_read);
  EXPECT_TRUE(text.has_value());
  EXPECT_EQ(read_system_call(pid, base::Tid{child}), text);
  ::close(ends[0]);
  ::close(ends[1]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ReadUserPlace, FailsForAnExitedThread) {
  EXPECT_FALSE(read_user_place(base::Pid{::getpid()}, base::Tid{1}).has_value());
  EXPECT_TRUE(read_kernel_stack(base::Pid{::getpid()}, base::Tid{1}).empty());
}

}  // namespace
}  // namespace pyinject::procfs
