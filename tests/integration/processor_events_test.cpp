// Events on all processors and their rings.
#include "events/processor_events.hpp"

#include "base/byte_cursor.hpp"
#include "base/clock.hpp"
#include "events/attributes.hpp"
#include "procfs/descriptors.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/patience.hpp"
#include "why/event_rings.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace pyinject {
namespace {

using std::chrono::microseconds;

constexpr std::size_t kOnePage = 4096;
// Not switches: other recorders of these would set the time of this one's (docs/kernel-notes.md).
constexpr microseconds kClockPeriod{50};

// Records of 16 bytes: 100 ms fill the page of a ring eight times.
void spend(microseconds length) {
  const auto end = base::time_by(CLOCK_THREAD_CPUTIME_ID) + length;
  while (base::time_by(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

class ProcessorEventsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = events::ProcessorEvents::open(events::processor_clock(kClockPeriod),
                                                {.largest = kOnePage, .smallest = kOnePage});
    if (const auto* const why = std::get_if<std::string>(&opened)) {
      ASSERT_EQ(std::getenv("PYINJECT_REQUIRE_PYTHONS"), nullptr) << *why;
      GTEST_SKIP() << *why;
    }
    CPU_ZERO(&before_);
    ASSERT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    events_.emplace(std::get<events::ProcessorEvents>(std::move(opened)));
  }
  void TearDown() override {
    if (events_) {
      ::sched_setaffinity(0, sizeof before_, &before_);
    }
  }
  std::optional<events::ProcessorEvents> events_;

 private:
  cpu_set_t before_{};
};

TEST_F(ProcessorEventsTest, HaveARingForEachProcessor) {
  EXPECT_EQ(events_->fds().size(), static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

TEST_F(ProcessorEventsTest, AreNotInheritedByPrograms) {
  std::size_t events = 0;
  const auto own = procfs::list_descriptors(base::Pid{::getpid()});
  ASSERT_TRUE(own);
  for (const int fd : *own) {
    if (procfs::read_own_descriptor_link(fd) == "anon_inode:[perf_event]") {
      ++events;
      EXPECT_EQ(::fcntl(fd, F_GETFD), FD_CLOEXEC);
    }
  }
  EXPECT_GE(events, events_->fds().size());
}

TEST_F(ProcessorEventsTest, PassRecordsOnThatWrapAround) {
  const auto begin = base::now_by(CLOCK_MONOTONIC);
  std::size_t bytes = 0;
  events_->enable();
  const auto deadline = base::Deadline::after(test::kPatience);
  while (bytes <= 2 * kOnePage && !deadline.expired()) {
    spend(microseconds{1000});
    events_->read([&](std::span<const std::byte> record) {
      base::ByteCursor cursor{record};
      const auto type = cursor.number<std::uint32_t>();
      cursor.number<std::uint16_t>();
      ASSERT_EQ(cursor.number<std::uint16_t>(), record.size());
      bytes += record.size();
      if (type == PERF_RECORD_SAMPLE) {
        const auto time = cursor.number<std::uint64_t>();
        EXPECT_TRUE(begin <= time && time <= base::now_by(CLOCK_MONOTONIC))
            << begin << ", " << time;
        EXPECT_TRUE(cursor.at_end() && !cursor.failed());
      }
    });
  }
  events_->disable();
  EXPECT_GT(bytes, 2 * kOnePage);
}

TEST_F(ProcessorEventsTest, SayThatARingWasFull) {
  int full = 0;
  const auto ignore = [](std::span<const std::byte>) {};
  const auto count = [&full] { ++full; };
  events_->enable();
  spend(microseconds{100'000});
  events_->disable();
  EXPECT_TRUE(events_->read(ignore, count));
  EXPECT_GE(full, 1);
  EXPECT_FALSE(events_->read(ignore)) << "the records of an event that is disabled";
}

TEST_F(ProcessorEventsTest, TellSwitchesFromSamplesBesideAnotherRecorderOfSwitches) {
  // Nearly each begins with a switch: it can be over before the thread has left the processor.
  constexpr int kNaps = 100;
  auto opened = why::EventRings::open(microseconds{1000});
  auto& rings = std::get<why::EventRings>(opened);
  auto attributes = events::software_event(PERF_COUNT_SW_CONTEXT_SWITCHES);
  attributes.sample_period = 1;
  attributes.sample_type |= PERF_SAMPLE_IDENTIFIER;
  auto others =
      events::ProcessorEvents::open(attributes, {.largest = 16 * kOnePage, .smallest = kOnePage});
  rings.enable();
  std::get<events::ProcessorEvents>(others).enable();
  for (int i = 0; i < kNaps; ++i) {
    std::this_thread::sleep_for(microseconds{1});
  }
  rings.disable();
  int switches = 0;
  rings.read([&](const why::RingRecord& record) {
    switches += record.at_switch && record.kind == why::RingRecord::Kind::kSample &&
                        static_cast<pid_t>(record.tid) == ::gettid()
                    ? 1
                    : 0;
  });
  EXPECT_GE(switches, kNaps / 2) << "with the ids of the other one: none";
}

}  // namespace
}  // namespace pyinject
