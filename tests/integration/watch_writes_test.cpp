// A write to the memory of a process is reported, and nothing of it is kept.
#include "integration/detection.hpp"
#include "integration/watching.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/watch/process_watch.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"
#include "watch/write_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using base::Pid;
using watch::Change;
using watch::ProcessEvent;

TEST_F(PerfWatchTest, TellsOfAWrite) {
  auto* const memory = static_cast<volatile int*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  SteppedChild child{[memory](SteppedChild& self) {
    self.wait();
    memory[1] = 1;
    self.wait();
    memory[0] = 1;
    self.wait();
    memory[0] = 2;
    self.wait();
  }};
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (!watch_->report_write(child.pid(), address)) {
    GTEST_SKIP() << "no hardware breakpoints here";
  }
  child.go_on();  // writes next to the address
  child.go_on();
  ASSERT_TRUE(wait_for(*watch_, is(Change::kWritten, child.pid())));
  child.go_on();  // reported only once
  child.go_on();
  std::vector<ProcessEvent> all;
  ASSERT_TRUE(wait_for(*watch_, is(Change::kExited, child.pid()), &all));
  EXPECT_TRUE(std::none_of(all.begin(), all.end(), is(Change::kWritten, child.pid())));
  EXPECT_FALSE(watch_->report_write(child.pid(), address));
  EXPECT_FALSE(watch_->report_write(Pid{::getpid()}, address + 1));
}

// A thousand processes that exit before they write: each must free its breakpoint.
TEST_F(PerfWatchTest, ForgetsWhatEnds) {
  auto* const memory =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int round = 0; round < 1000; ++round) {
    SteppedChild child{[](SteppedChild& self) { self.wait(); }};
    if (!watch_->report_write(child.pid(), reinterpret_cast<std::uintptr_t>(memory))) {
      ASSERT_EQ(round, 0);
      GTEST_SKIP() << "no hardware breakpoints here";
    }
    ::kill(child.pid().value(), SIGKILL);
    // If other activity makes the ring lose records, the running processes are listed instead.
    ASSERT_TRUE(wait_for(*watch_,
                         [&](const ProcessEvent& event) {
                           return is(Change::kExited, child.pid())(event) ||
                                  event.change == Change::kAppeared;
                         }))
        << "round " << round;
  }
}

// A write that happens while the breakpoints are being set, which takes a while with many threads,
// is reported.
TEST(WriteWatch, LosesNoWriteOfThisMoment) {
  constexpr int kWriters = 100;
  auto* const memory = static_cast<volatile int*>(
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  SteppedChild child{[memory](SteppedChild& self) {
    for (int count = 0; count < kWriters; ++count) {
      std::thread{[] { ::pause(); }}.detach();
    }
    memory[1] = 1;
    while (true) {
      self.wait();
      memory[0] = 1;
    }
  }};
  const auto deadline = Deadline::after(std::chrono::seconds{30});
  while (memory[1] == 0 && !deadline.expired()) {
    std::this_thread::yield();
  }
  watch::WriteWatch writes;
  for (int round = 0; round < 200; ++round) {
    if (!writes.add(child.pid(), reinterpret_cast<std::uintptr_t>(memory))) {
      ASSERT_EQ(round, 0);
      GTEST_SKIP() << "no hardware breakpoints here";
    }
    child.go_on();
    std::vector<Pid> written;
    const auto soon = Deadline::after(std::chrono::milliseconds{1});
    while (written.empty() && !soon.expired()) {
      written = writes.taken();
    }
    while (written.empty()) {
      pollfd ready{.fd = writes.fd(), .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&ready, 1, deadline.remaining_ms()), 1) << "round " << round;
      written = writes.taken();
    }
    EXPECT_THAT(written, testing::ElementsAre(child.pid()));
  }
}

class PerfWatchPythonTest : public testing::TestWithParam<Interpreter> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PerfWatchPythonTest);
INSTANTIATE_TEST_SUITE_P(Pythons, PerfWatchPythonTest, testing::ValuesIn(interpreters()),
                         InterpreterName{});

// From its mapping until it can be activated, without polling in between.
TEST_P(PerfWatchPythonTest, TellsWhenAnInterpreterIsReady) {
  const auto watch = by_perf();
  if (!watch) {
    GTEST_SKIP() << "built without libperf, or without the right";
  }
  const auto detector = python::make_detector();
  const SeenDirectory directory{GetParam()};  // CPython imports `encodings` before it is ready
  std::filesystem::create_directory(directory.here("encodings"));
  directory.write("encodings/__init__.py",
                  "import posix, sys\n"
                  "posix.write(1, b'ready\\n')\n"
                  "posix.read(0, 100)\n"
                  "sys.path.pop(0)\n"
                  "del sys.modules['encodings']\n"
                  "import encodings\n");
  PythonProcess python{with_variable(GetParam(), "PYTHONPATH=" + directory.seen("")), kIdle};
  ASSERT_TRUE(wait_for(*watch, [&](const ProcessEvent& event) {
    return is(Change::kMapped, python.pid())(event) &&
           detector->may_hold_interpreter(event.pid, event.file, event.path,
                                          base::Cancellation::never());
  }));
  const auto initialized = refused(python.pid()).initialized;
  ASSERT_TRUE(initialized);
  if (!watch->report_write(python.pid(), initialized->value())) {
    GTEST_SKIP() << "no hardware breakpoints here";
  }
  python.send_line("go on");
  ASSERT_TRUE(wait_for(*watch, is(Change::kWritten, python.pid())));
  expect_ready(python.pid());
}

}  // namespace
}  // namespace pyinject::test
