#include "pyinject/targets/stop_signals.hpp"

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/patience.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include <poll.h>
#include <unistd.h>

namespace pyinject::targets {
namespace {

// The calling thread computes in the meantime and never polls a descriptor.
bool is_heard(const base::Cancellation& cancellation) {
  const auto deadline = base::Deadline::after(test::kPatience);
  while (!cancellation.cancelled() && !deadline.expired()) {
  }
  return cancellation.cancelled();
}

bool is_readable(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(StopSignals, AreHeardWhileTheCallerIsBusy) {
  StopSignals signals;
  base::Cancellation cancellation;
  signals.listen([&](int) { cancellation.cancel(); });
  EXPECT_FALSE(is_readable(signals.fd()));
  ::kill(::getpid(), SIGINT);
  EXPECT_TRUE(is_heard(cancellation));
  EXPECT_TRUE(is_readable(signals.fd()));
  EXPECT_EQ(signals.next(), SIGINT);
  EXPECT_EQ(signals.next(), std::nullopt);
  EXPECT_FALSE(is_readable(signals.fd()));
}

TEST(StopSignals, AreTakenBeforeTheListenerGetsToThem) {
  StopSignals signals;
  signals.listen([](int) {});
  ::kill(::getpid(), SIGTERM);
  EXPECT_EQ(signals.next(), SIGTERM);
}

TEST(StopSignals, AreHeardByTheLatestListenerOnly) {
  StopSignals signals;
  base::Cancellation first;
  base::Cancellation second;
  signals.listen([&](int) { first.cancel(); });
  signals.listen([&](int) { second.cancel(); });
  ::kill(::getpid(), SIGHUP);
  EXPECT_TRUE(is_heard(second));
  EXPECT_FALSE(first.cancelled());
  EXPECT_EQ(signals.next(), SIGHUP);
}

TEST(StopSignals, StayPendingWhenTheyWereHeardButNotTaken) {
  StopSignals outer;
  {
    StopSignals inner;
    base::Cancellation cancellation;
    inner.listen([&](int) { cancellation.cancel(); });
    ::kill(::getpid(), SIGTERM);
    EXPECT_TRUE(is_heard(cancellation));
  }
  EXPECT_EQ(outer.next(), SIGTERM);
}

// nohup(1), before a terminal is closed.
TEST(StopSignals, LeaveOutAHangupThatIsIgnored) {
  (void)::signal(SIGHUP, SIG_IGN);
  {
    StopSignals signals;
    ::kill(::getpid(), SIGHUP);
    EXPECT_EQ(signals.next(), std::nullopt);
    signals.listen([](int) {});
    ::kill(::getpid(), SIGHUP);
    ::kill(::getpid(), SIGTERM);
    EXPECT_EQ(signals.next(), SIGTERM);
    EXPECT_EQ(signals.next(), std::nullopt);
    EXPECT_THAT(signals.ignored_before(), testing::Contains(SIGHUP));
  }
  (void)::signal(SIGHUP, SIG_DFL);
}

// Two threads, as a program and its own "stop" button.
TEST(StopSwitch, IsHeardAndKept) {
  StopSwitch stop;
  EXPECT_FALSE(is_readable(stop.fd()));
  std::thread{[&] { stop.request(); }}.join();
  EXPECT_TRUE(is_readable(stop.fd()));
  base::Cancellation cancellation;
  stop.listen([&](int) { cancellation.cancel(); });
  EXPECT_TRUE(cancellation.cancelled()) << "the request came first";
  EXPECT_EQ(stop.next(), SIGINT);
  EXPECT_FALSE(is_readable(stop.fd()));
}

}  // namespace
}  // namespace pyinject::targets
