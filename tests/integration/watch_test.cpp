// Processes that start, exec and exit are detected, with both ways of watching.
#include "integration/watching.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/watch/process_watch.hpp"
#include "support/child_process.hpp"
#include "support/covering.hpp"
#include "support/fake_python.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <linux/perf_event.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using base::Pid;
using watch::Change;
using watch::ProcessEvent;
using watch::ProcessWatch;

enum class Way { kPerfEvents, kProcfs };

class WatchTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    watch_ = GetParam() == Way::kPerfEvents ? by_perf() : watch::watch_by_procfs();
    if (!watch_) {
      GTEST_SKIP() << "built without libperf, or without the right";
    }
  }
  std::unique_ptr<ProcessWatch> watch_;
};
COVER(WatchTest, test::kEveryRow);
INSTANTIATE_TEST_SUITE_P(Cases, WatchTest, testing::Values(Way::kPerfEvents, Way::kProcfs),
                         [](const auto& one) {
                           return one.param == Way::kPerfEvents ? "perf_events" : "procfs";
                         });

TEST_P(WatchTest, SeesALifeInItsOrder) {
  SteppedChild child{[](SteppedChild& self) {
    self.wait();
    ::prctl(PR_SET_NAME, "another name");
    self.wait();
    ::execlp("sleep", "sleep", "100", nullptr);
  }};
  std::vector<ProcessEvent> all;
  ASSERT_TRUE(wait_for(*watch_, is(Change::kForked, child.pid()), &all));
  const auto birth = std::find_if(all.begin(), all.end(), is(Change::kForked, child.pid()));
  EXPECT_EQ(birth->parent, Pid{::getpid()});
  child.go_on();
  ASSERT_TRUE(wait_for(*watch_, [&](const ProcessEvent& event) {
    return is(Change::kNamed, child.pid())(event) && event.path == "another name";
  }));
  child.go_on();
  ASSERT_TRUE(wait_for(*watch_, [&](const ProcessEvent& event) {
    return is(Change::kExec, child.pid())(event) && event.path == "sleep";
  }));
  ::kill(child.pid().value(), SIGKILL);
  ASSERT_TRUE(wait_for(*watch_, is(Change::kExited, child.pid())));
}

TEST_P(WatchTest, LeavesThreadsOut) {
  const RunResult result =
      run({"python3", "-c",
           "import threading, os\n"
           "ids = []\n"
           "for i in range(20):\n"
           "  t = threading.Thread(target=lambda: ids.append(threading.get_native_id()))\n"
           "  t.start(); t.join()\n"
           "print(os.getpid(), *ids)\n"});
  std::istringstream words{result.out};
  pid_t number = 0;
  words >> number;
  const Pid pid{number};
  std::set<Pid> threads;
  while (words >> number) {
    threads.insert(Pid{number});
  }
  ASSERT_EQ(threads.size(), 20U);
  SteppedChild last{[](SteppedChild& self) { self.wait(); }};
  std::vector<ProcessEvent> all;
  ASSERT_TRUE(wait_for(*watch_, is(Change::kForked, last.pid()), &all));
  for (const auto& event : all) {
    EXPECT_FALSE(threads.contains(event.pid) && event.pid != pid);
  }
}

// Five hundred processes start per second; one in fifty lives until it was detected.
TEST_P(WatchTest, MissesNoneInAStormThatLivesUntilItLooks) {
  if (GetParam() == Way::kProcfs) {
    itimerspec looks{};
    ASSERT_EQ(::timerfd_gettime(watch_->fd(), &looks), 0);
    EXPECT_EQ(looks.it_interval.tv_sec, 0);
    EXPECT_LE(looks.it_interval.tv_nsec, 50'000'000)
        << "a process that lives for 100 ms is detected";
  }
  constexpr auto kStorm =
      "import os, subprocess, sys, time\n"
      "begin = time.monotonic()\n"
      "for i in range(1000):\n"
      "  pid = os.posix_spawn('/bin/true', ['true'], {})\n"
      "  os.waitpid(pid, 0)\n"
      "  if i % 50 == 0:\n"
      "    with subprocess.Popen(['cat'], stdin=subprocess.PIPE) as kept:\n"
      "      print(kept.pid, flush=True)\n"
      "      sys.stdin.readline()\n"
      "  time.sleep(max(0, begin + i / 500 - time.monotonic()))\n"
      "print('over', flush=True)\n"
      "sys.stdin.read()\n";
  ChildProcess storm{{"python3", "-c", kStorm}};
  std::set<Pid> living;
  const auto deadline = Deadline::after(std::chrono::seconds{100});
  const auto look = [&](const std::function<bool()>& enough) {
    while (!deadline.expired() && !enough()) {
      pollfd ready{.fd = watch_->fd(), .events = POLLIN, .revents = 0};
      ::poll(&ready, 1, 100);
      for (const auto& event : watch_->take()) {
        if (event.change == Change::kForked) {
          living.insert(event.pid);
        } else if (event.change == Change::kExited) {
          living.erase(event.pid);
        }
      }
    }
  };
  for (int kept = 0; kept <= 20; ++kept) {
    std::optional<std::string> line;
    look([&] {
      line = storm.read_line(Deadline::after({}));
      return line.has_value();
    });
    ASSERT_TRUE(line) << storm.err();
    if (kept == 20) {
      EXPECT_EQ(*line, "over");
      break;
    }
    const Pid pid{std::stoi(*line)};
    look([&] { return living.contains(pid); });
    ASSERT_TRUE(living.contains(pid)) << pid.value();
    storm.write("\n");
  }
  SteppedChild last{[](SteppedChild& self) { self.wait(); }};
  look([&] { return living.contains(last.pid()); });
  EXPECT_TRUE(living.contains(last.pid()));
  EXPECT_LT(living.size(), 500U);  // exits are detected, too
}

// A record written between two looks at a buffer belongs to the second one.
TEST_F(PerfWatchTest, MissesNoneWhileItLooksAllTheTime) {
  std::set<Pid> started;
  std::atomic<bool> over = false;
  std::thread starter{[&] {
    for (int count = 0; count < 3000; ++count) {
      const pid_t child = ::vfork();
      if (child == 0) {
        ::_exit(0);
      }
      started.insert(Pid{child});
      ::waitpid(child, nullptr, 0);
    }
    over = true;
  }};
  std::set<Pid> seen;
  const auto look = [&] {
    for (const auto& event : watch_->take()) {
      EXPECT_NE(event.change, Change::kAppeared) << "the buffers are too small for this test";
      if (event.change == Change::kForked) {
        seen.insert(event.pid);
      }
    }
  };
  while (!over) {
    look();
  }
  starter.join();
  look();
  std::vector<Pid> missed;
  std::ranges::set_difference(started, seen, std::back_inserter(missed));
  EXPECT_EQ(missed.size(), 0U);
}

TEST_F(PerfWatchTest, SeesWhatAProcessMaps) {
  ChildProcess cat{{"cat"}};
  std::vector<ProcessEvent> all;
  ASSERT_TRUE(wait_for(
      *watch_,
      [&](const ProcessEvent& event) {
        return is(Change::kMapped, cat.pid())(event) &&
               event.path.find("/libc.so") != std::string::npos;
      },
      &all));
  const auto maps = procfs::read_maps(cat.pid());
  ASSERT_TRUE(maps);
  for (const auto& event : all) {
    if (event.change != Change::kMapped || event.pid != cat.pid()) {
      continue;
    }
    EXPECT_TRUE(std::any_of(maps->begin(), maps->end(), [&](const procfs::Mapping& mapping) {
      return mapping.path == event.path && mapping.inode == event.file.inode &&
             mapping.device_major == event.file.device_major &&
             mapping.device_minor == event.file.device_minor;
    })) << event.path;
  }
  const auto place = [&](Change change) {
    return std::find_if(all.begin(), all.end(), is(change, cat.pid())) - all.begin();
  };
  EXPECT_LT(place(Change::kForked), place(Change::kExec));
  EXPECT_LT(place(Change::kExec), place(Change::kMapped));
}

// Records the build-ids of mappings on the processor on which this thread runs in the meantime.
class BuildIdsElsewhere {
 public:
  BuildIdsElsewhere() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    const int processor = ::sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(processor), &one);
    ::sched_setaffinity(0, sizeof one, &one);
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.build_id = 1;
    event_ = base::UniqueFd{static_cast<int>(
        ::syscall(SYS_perf_event_open, &attr, -1, processor, -1, PERF_FLAG_FD_CLOEXEC))};
    memory_ = ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED, event_.get(), 0);
  }
  ~BuildIdsElsewhere() {
    ::munmap(memory_, kMemory);
    ::sched_setaffinity(0, sizeof before_, &before_);
  }
  BuildIdsElsewhere(const BuildIdsElsewhere&) = delete;
  BuildIdsElsewhere& operator=(const BuildIdsElsewhere&) = delete;
  [[nodiscard]] bool runs() const { return event_.valid() && memory_ != MAP_FAILED; }

 private:
  static constexpr std::size_t kMemory = std::size_t{65} * 4096;
  cpu_set_t before_{};
  base::UniqueFd event_;
  void* memory_ = nullptr;
};

// The kernel passes both events the same record and does not remove what it added for the first.
TEST_F(PerfWatchTest, SeesWhatAProcessMapsBesideARecordingWithBuildIds) {
  const BuildIdsElsewhere other;
  if (!other.runs()) {
    GTEST_SKIP() << "the kernel tells no build ids";
  }
  ChildProcess cat{{"cat"}};
  EXPECT_TRUE(wait_for(*watch_, [&](const ProcessEvent& event) {
    return is(Change::kMapped, cat.pid())(event) &&
           event.path.find("/libc.so") != std::string::npos;
  }));
}

// Two pages per processor hold some 150 records.
TEST_F(PerfWatchTest, NamesAllProcessesWhenRecordsAreLost) {
  watch_ = by_perf(2);
  ASSERT_TRUE(watch_);
  SteppedChild kept{[](SteppedChild& self) { self.wait(); }};
  for (unsigned count = 0; count < 500 * std::thread::hardware_concurrency(); ++count) {
    SteppedChild child{[](SteppedChild&) {}};
  }
  std::vector<ProcessEvent> all;
  EXPECT_TRUE(wait_for(*watch_, is(Change::kAppeared, kept.pid()), &all));
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), is(Change::kAppeared, Pid{::getpid()})));
}

TEST_F(PerfWatchTest, GivesEverythingBack) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
  };
  const auto before = descriptors();
  for (int count = 0; count < 20; ++count) {
    EXPECT_TRUE(by_perf());
  }
  EXPECT_EQ(descriptors(), before);
}

TEST(WatchProcesses, PicksOneAndSaysWhich) {
  RecordingLogger logger;
  const auto watch = watch::watch_processes(logger);
  ASSERT_TRUE(watch);
  EXPECT_THAT(logger.text(base::LogLevel::kDebug),
              testing::HasSubstr("watched by " + std::string{watch->name()}));
}

}  // namespace
}  // namespace pyinject::test
