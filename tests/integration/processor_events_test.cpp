// Events on all processors and their rings.
#include "events/processor_events.hpp"

#include "base/byte_cursor.hpp"
#include "events/attributes.hpp"
#include "procfs/descriptors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

namespace pyinject {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr std::size_t kOnePage = 4096;
// Each begins with a switch on the processor of this thread: with records of 24 bytes they fill the
// page of its ring thrice.
constexpr int kNaps = 600;
void nap() { std::this_thread::sleep_for(microseconds{1}); }

std::uint64_t monotonic() {
  return static_cast<std::uint64_t>(steady_clock::now().time_since_epoch().count());
}

class ProcessorEventsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto switches = events::software_event(PERF_COUNT_SW_CONTEXT_SWITCHES);
    switches.sample_period = 1;
    switches.disabled = 1;
    std::array attributes{switches, events::processor_clock(microseconds{1000})};
    for (auto& attr : attributes) {
      attr.sample_type |= PERF_SAMPLE_IDENTIFIER;
    }
    auto opened =
        events::ProcessorEvents::open(attributes, {.largest = kOnePage, .smallest = kOnePage});
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

TEST_F(ProcessorEventsTest, HaveAnIdAndARingForEachProcessor) {
  const auto processors = static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  std::set<std::uint64_t> all;
  for (const auto number : {std::size_t{0}, std::size_t{1}}) {
    const auto ids = events_->ids(number);
    EXPECT_EQ(ids.size(), processors);
    all.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(all.size(), 2 * processors);
  EXPECT_EQ(events_->fds().size(), processors);
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
  EXPECT_GE(events, 2 * events_->fds().size());
}

TEST_F(ProcessorEventsTest, PassRecordsOnThatWrapAround) {
  const auto begin = monotonic();
  std::size_t bytes = 0;
  std::set<std::uint64_t> seen;
  events_->enable();
  for (int i = 0; i < kNaps; ++i) {
    nap();
    events_->read([&](std::span<const std::byte> record) {
      base::ByteCursor cursor{record};
      const auto type = cursor.number<std::uint32_t>();
      cursor.number<std::uint16_t>();
      ASSERT_EQ(cursor.number<std::uint16_t>(), record.size());
      bytes += record.size();
      if (type == PERF_RECORD_SAMPLE) {
        seen.insert(cursor.number<std::uint64_t>());
        const auto time = cursor.number<std::uint64_t>();
        EXPECT_TRUE(begin <= time && time <= monotonic()) << begin << ", " << time;
        EXPECT_TRUE(cursor.at_end() && !cursor.failed());
      }
    });
  }
  events_->disable();
  EXPECT_GT(bytes, 3 * kOnePage);
  for (const auto id : seen) {
    EXPECT_TRUE(std::ranges::binary_search(events_->ids(0), id) ||
                std::ranges::binary_search(events_->ids(1), id))
        << id;
  }
}

TEST_F(ProcessorEventsTest, SayThatARingWasFull) {
  int full = 0;
  const auto ignore = [](std::span<const std::byte>) {};
  const auto count = [&full] { ++full; };
  events_->enable();
  for (int i = 0; i < kNaps; ++i) {
    nap();
  }
  events_->disable();
  EXPECT_TRUE(events_->read(ignore, count));
  EXPECT_GE(full, 1);
  EXPECT_FALSE(events_->read(ignore)) << "the records of an event that is disabled";
}

}  // namespace
}  // namespace pyinject
