#include "inspect/described_call.hpp"

#include "inspect/system_call_names.hpp"
#include "unit/memory/fake_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace pyinject::inspect {
namespace {

using std::chrono::seconds;

class DescribedCallTest : public testing::Test {
 protected:
  template <typename Value>
  void put(std::uint64_t at, const Value& value) {
    memory_.put(at, value);
  }
  void put_text(std::uint64_t at, const std::string& text) {
    memory_.put_zeros(at, 512);
    memory_.put_text(at, text);
  }
  [[nodiscard]] DescribedCall call(long number, std::array<std::uint64_t, 6> arguments) const {
    return describe_call({.number = number, .arguments = arguments},
                         {.memory = memory_,
                          .file = [](int fd) { return fd == 9 ? "" : "/f" + std::to_string(fd); },
                          .now = [](clockid_t clock) -> std::optional<std::chrono::nanoseconds> {
                            if (clock != CLOCK_MONOTONIC) {
                              return std::nullopt;
                            }
                            return seconds{100};
                          }});
  }
  [[nodiscard]] std::string text(long number, std::array<std::uint64_t, 6> arguments) const {
    return to_string(call(number, arguments));
  }

  test::FakeMemory memory_;
};

constexpr std::uint64_t kAt = 0x1000;

TEST_F(DescribedCallTest, NamesTheFileOfADescriptor) {
  EXPECT_EQ(text(SYS_read, {3, kAt, 10}), "read(fd 3: /f3)");
  EXPECT_EQ(text(SYS_recvfrom, {4, kAt, 10}), "recvfrom(fd 4: /f4)");
  EXPECT_EQ(text(SYS_accept4, {9}), "accept4(fd 9)");
  const auto waiting = call(SYS_fsync, {5});
  EXPECT_EQ(waiting.descriptor, 5);
  EXPECT_EQ(waiting.file, "/f5");
}

TEST_F(DescribedCallTest, ShowsThatUnknownArgumentsExist) {
  EXPECT_EQ(text(SYS_mmap, {0, 1, 2}), "mmap(...)");
  EXPECT_EQ(text(SYS_pause, {}), "pause()");
  EXPECT_EQ(text(4000, {}), "syscall_4000(...)");
}

TEST_F(DescribedCallTest, ReadsPathsFromMemory) {
  put_text(kAt, "/srv/data");
  EXPECT_EQ(text(SYS_openat, {static_cast<std::uint64_t>(AT_FDCWD), kAt}), "openat(/srv/data)");
  EXPECT_EQ(text(SYS_openat, {3, kAt}), "openat(fd 3: /f3, /srv/data)");
  EXPECT_EQ(text(SYS_open, {0xdead}), "open(...)");
}

TEST_F(DescribedCallTest, CutsPathsWithoutAnEnd) {
  put_text(kAt, std::string(512, 'x'));
  EXPECT_EQ(call(SYS_open, {kAt}).arguments.at(0).size(), 256U);
}

TEST_F(DescribedCallTest, NamesThePeerOfAConnect) {
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(5432);
  peer.sin_addr.s_addr = htonl(0x0a000002);
  put(kAt, peer);
  EXPECT_EQ(text(SYS_connect, {3, kAt, sizeof peer}), "connect(fd 3: /f3, 10.0.0.2:5432)");
  EXPECT_EQ(text(SYS_connect, {3, kAt, 1}), "connect(fd 3: /f3)");
}

TEST_F(DescribedCallTest, ListsPolledDescriptors) {
  std::array<pollfd, 12> polled{};
  for (int i = 0; i < 12; ++i) {
    polled.at(static_cast<std::size_t>(i)).fd = i == 1 ? -1 : i;
  }
  put(kAt, polled);
  EXPECT_EQ(text(SYS_poll, {kAt, 3, 1500}), "poll(fd 0: /f0, fd 2: /f2, timeout 1.5 s)");
  EXPECT_EQ(text(SYS_poll, {kAt, 1, static_cast<std::uint64_t>(-1)}), "poll(fd 0: /f0)");
  EXPECT_EQ(call(SYS_poll, {kAt, 1, 0}).descriptor, 0);
  EXPECT_EQ(call(SYS_poll, {kAt, 12, 0}).arguments.at(7), "4 more");
}

TEST_F(DescribedCallTest, ListsSelectedDescriptors) {
  put<std::uint64_t>(kAt, 0b1000);
  put<std::uint64_t>(kAt + 0x1000, 0b100);
  EXPECT_EQ(text(SYS_pselect6, {4, kAt, kAt + 0x1000}), "pselect6(fd 2: /f2, fd 3: /f3)");
  EXPECT_EQ(text(SYS_select, {0xffffffff, kAt}), "select(...)");
}

TEST_F(DescribedCallTest, NamesTheOperationOnAFutex) {
  EXPECT_EQ(text(SYS_futex, {0xabc, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0}),
            "futex(FUTEX_WAIT, 0xabc)");
  put(kAt, timespec{.tv_sec = 103, .tv_nsec = 500'000'000});
  EXPECT_EQ(text(SYS_futex, {0xabc, FUTEX_WAIT_BITSET, 0, kAt}),
            "futex(FUTEX_WAIT_BITSET, 0xabc, timeout in 3.5 s)");
  EXPECT_EQ(text(SYS_futex, {0xabc, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, kAt}),
            "futex(FUTEX_WAIT_BITSET, 0xabc)");
}

TEST_F(DescribedCallTest, SaysHowLongASleepTakes) {
  put(kAt, timespec{.tv_sec = 102, .tv_nsec = 0});
  EXPECT_EQ(text(SYS_clock_nanosleep, {CLOCK_MONOTONIC, 1, kAt}), "clock_nanosleep(2.0 s left)");
  EXPECT_EQ(text(SYS_clock_nanosleep, {CLOCK_MONOTONIC, 0, kAt}), "clock_nanosleep(102.0 s)");
  put(kAt, timespec{.tv_sec = 0, .tv_nsec = 5'000'000});
  EXPECT_EQ(text(SYS_nanosleep, {kAt}), "nanosleep(5 ms)");
  put(kAt, timespec{.tv_sec = 0, .tv_nsec = -1});
  EXPECT_EQ(text(SYS_nanosleep, {kAt}), "nanosleep(...)");
}

TEST_F(DescribedCallTest, NamesTheChildThatIsWaitedFor) {
  EXPECT_EQ(text(SYS_wait4, {42}), "wait4(pid 42)");
  EXPECT_EQ(text(SYS_wait4, {0xffffffff}), "wait4(any child)");
  EXPECT_EQ(text(SYS_waitid, {1, 42}), "waitid(pid 42)");
}

TEST(SystemCallNames, AreThoseOfTheKernel) {
  EXPECT_EQ(system_call_name(SYS_read), "read");
  EXPECT_EQ(system_call_name(SYS_futex), "futex");
  EXPECT_EQ(system_call_name(SYS_statx), "statx");
  EXPECT_EQ(system_call_name(SYS_pidfd_open), "pidfd_open");
  EXPECT_EQ(system_call_name(SYS_epoll_pwait2), "epoll_pwait2");
  EXPECT_EQ(system_call_name(400), "");
  EXPECT_EQ(system_call_name(-1), "");
  EXPECT_EQ(system_call_name(1'000'000), "");
}

}  // namespace
}  // namespace pyinject::inspect
