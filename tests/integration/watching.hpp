// Shared by the tests of watches.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/watch/process_watch.hpp"
#include "support/patience.hpp"
#include "watch/perf_watch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {

// Large enough to hold all records of the machine while a test does not read them.
inline constexpr std::size_t kManyPages = 16 * watch::kRingPages;

[[nodiscard]] inline std::unique_ptr<watch::ProcessWatch> by_perf(std::size_t pages = kManyPages) {
  std::string why;
  auto made = watch::watch_by_perf_events(why, pages);
  if (!made && (std::getenv("PYINJECT_REQUIRE_PYTHONS") != nullptr)) {
    ADD_FAILURE() << "no watch by perf events: " << why;
  }
  return made;
}

// Reads events of WATCH until one is WANTED; false at the deadline.
using Wanted = std::function<bool(const watch::ProcessEvent&)>;
[[nodiscard]] inline bool wait_for(watch::ProcessWatch& watch, const Wanted& wanted,
                                   std::vector<watch::ProcessEvent>* all = nullptr) {
  const auto deadline = base::Deadline::after(kPatience);
  while (!deadline.expired()) {
    pollfd ready{.fd = watch.fd(), .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, deadline.remaining_ms());
    bool found = false;
    for (auto& event : watch.take()) {
      found = found || wanted(event);
      if (all != nullptr) {
        all->push_back(std::move(event));
      }
    }
    if (found) {
      return true;
    }
  }
  return false;
}

[[nodiscard]] inline Wanted is(watch::Change change, base::Pid pid) {
  return
      [=](const watch::ProcessEvent& event) { return event.change == change && event.pid == pid; };
}

// A child of this process that runs BODY; in wait() it blocks until go_on().
class SteppedChild {
 public:
  explicit SteppedChild(const std::function<void(SteppedChild&)>& body) {
    if (::pipe2(told_.data(), O_CLOEXEC) != 0) {
      throw base::SystemError{"pipe2", errno};
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      body(*this);
      ::_exit(0);
    }
  }
  ~SteppedChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(told_[0]);
    ::close(told_[1]);
  }
  SteppedChild(const SteppedChild&) = delete;
  SteppedChild& operator=(const SteppedChild&) = delete;
  [[nodiscard]] base::Pid pid() const { return base::Pid{pid_}; }
  void go_on() { EXPECT_EQ(::write(told_[1], "x", 1), 1); }
  void wait() {
    char byte = 0;
    if (::read(told_[0], &byte, 1) != 1) {
      ::_exit(1);
    }
  }

 private:
  std::array<int, 2> told_{};
  pid_t pid_ = 0;
};

class PerfWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    watch_ = by_perf();
    if (!watch_) {
      GTEST_SKIP() << "built without libperf, or without the right";
    }
  }
  std::unique_ptr<watch::ProcessWatch> watch_;
};

}  // namespace pyinject::test
