#include "pyinject/report/reader.hpp"

#include "report/marks.hpp"
#include "report/names.hpp"
#include "support/made_perf_data.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::report {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kCode = 0x10000;
constexpr std::uint64_t kSize = 0x100;  // of a function
constexpr std::uint64_t kDepth = 21;    // of stacks: more than what is looked up at once
constexpr std::uint64_t kKernelCode = 0xffff'ffff'8100'0000;

// Processes whose callchains have the same addresses, but lead to other code.
class ProfileReader : public testing::Test {
 protected:
  static std::uint64_t task(std::uint32_t pid) { return pid | std::uint64_t{pid} << 32U; }
  void map(std::uint64_t time, std::uint32_t pid, const std::string& file) {
    data_.data +=
        test::made_record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
                          test::words(task(pid), kCode, kDepth * kSize, 0, 0, 0, 0, PROT_EXEC) +
                              test::padded(file) + test::words(task(pid), time));
  }
  void exec(std::uint64_t time, std::uint32_t pid) {
    data_.data += test::made_record(
        PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC,
        test::words(task(pid)) + test::padded("other") + test::words(task(pid), time));
  }
  void fork(std::uint64_t time, std::uint32_t parent, std::uint32_t pid) {
    data_.data += test::made_record(
        PERF_RECORD_FORK, 0,
        test::words(pid | std::uint64_t{parent} << 32U, pid | std::uint64_t{parent} << 32U, time) +
            test::words(task(pid), time));
  }
  // The stack of all functions, of which the innermost one has OFFSET.
  void sample(std::uint64_t time, std::uint32_t pid, std::uint64_t offset,
              const std::vector<std::uint64_t>& kernel = {}) {
    std::vector<std::uint64_t> chain{static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL)};
    chain.insert(chain.end(), kernel.begin(), kernel.end());
    chain.push_back(static_cast<std::uint64_t>(PERF_CONTEXT_USER));
    for (std::uint64_t i = 0; i < kDepth; ++i) {
      chain.push_back(kCode + i * kSize + (i == 0 ? offset : 1));
    }
    auto payload = test::words(chain[1], task(pid), time, chain.size());
    for (const auto address : chain) {
      payload += test::words(address);
    }
    data_.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload);
  }
  [[nodiscard]] Profile read() {
    data_.events = {test::made_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                     PERF_SAMPLE_CALLCHAIN)};
    const auto file = directory_.file("perf.data", data_.bytes());
    auto profile = read_profile(file, {.open_perf_map = map_of});
    EXPECT_TRUE(std::holds_alternative<Profile>(profile));
    return std::get<Profile>(std::move(profile));
  }
  // "p7_0" to "p7_20" of process 7.
  static base::UniqueFd map_of(std::uint32_t pid) {
    std::string text;
    for (std::uint64_t i = 0; i < kDepth; ++i) {
      text += fmt::format("{:x} {:x} py::p{}_{}:/a.py\n", kCode + i * kSize, kSize, pid, i);
    }
    auto file = test::memory_file(text);
    (void)::lseek(file.get(), 0, SEEK_SET);
    return file;
  }
  // Innermost first.
  static std::vector<std::string> names(const Profile& profile, std::size_t sample) {
    std::vector<std::string> names;
    for (const auto frame : frames_of(profile, profile.samples.at(sample).stack)) {
      names.push_back(name_of(profile, function_of(profile, frame)));
    }
    return names;
  }
  static std::vector<std::string> all_of(std::uint32_t pid) {
    std::vector<std::string> names;
    for (std::uint64_t i = 0; i < kDepth; ++i) {
      names.push_back(fmt::format("p{}_{}", pid, i));
    }
    return names;
  }

 private:
  test::MadePerfData data_;
  test::TempDir directory_;
};

TEST_F(ProfileReader, NamesTheSameAddressesByProcessAndTime) {
  map(1, 7, "//anon");
  map(1, 8, "//anon");
  sample(10, 7, 1);
  sample(11, 8, 1);
  sample(12, 7, 2);
  exec(20, 7);
  map(21, 7, "/no/such/file");
  sample(30, 7, 1);
  sample(31, 8, 1);
  const auto profile = read();
  ASSERT_EQ(profile.samples.size(), 5U);
  EXPECT_EQ(names(profile, 0), all_of(7));
  EXPECT_EQ(names(profile, 1), all_of(8));
  EXPECT_EQ(names(profile, 3), std::vector<std::string>(kDepth, "[file]"));
  EXPECT_EQ(names(profile, 4), all_of(8));
  EXPECT_EQ(profile.samples[2].stack, profile.samples[0].stack) << "the same functions";
}

TEST_F(ProfileReader, PutsTheKernelInside) {
  map(1, 7, "//anon");
  sample(10, 7, 1, {kKernelCode + 8, kKernelCode});
  sample(11, 7, 1);
  const auto profile = read();
  auto expected = all_of(7);
  EXPECT_EQ(names(profile, 1), expected);
  const auto got = names(profile, 0);
  ASSERT_EQ(got.size(), kDepth + 2);
  EXPECT_EQ(std::vector(got.begin() + 2, got.end()), expected);
  const auto frames = frames_of(profile, profile.samples[0].stack);
  EXPECT_EQ(function_of(profile, frames[0]).kind, Kind::kKernel);
  EXPECT_EQ(function_of(profile, frames[1]).kind, Kind::kKernel);
}

TEST_F(ProfileReader, ListsForksOfProcessesByPid) {
  sample(40, 7, 1);
  fork(30, 7, 9);
  fork(20, 7, 8);
  fork(10, 6, 9);
  fork(15, 7, 7);  // a thread
  std::vector<std::vector<std::uint64_t>> forks;
  for (const auto& fork : read().forks) {
    forks.push_back({fork.pid, fork.time, fork.parent});
  }
  EXPECT_THAT(forks,
              ElementsAre(ElementsAre(8, 20, 7), ElementsAre(9, 10, 6), ElementsAre(9, 30, 7)));
}

TEST_F(ProfileReader, NamesNothingOfUnknownMemoryButTheSample) {
  sample(10, 7, 1);
  const auto profile = read();
  EXPECT_THAT(names(profile, 0), ElementsAre("[unknown]"));
}

// perf record --off-cpu -e '{cpu-clock,task-clock}:S'
TEST(GroupReader, HasASampleOfEachMemberBesideWaits) {
  constexpr std::uint64_t kType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                  PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD;
  constexpr std::uint64_t kTask = std::uint64_t{7} << 32U | 7U;
  test::MadePerfData made;
  made.events = {test::made_event(kType | PERF_SAMPLE_READ, {10}), test::made_event(kType, {11}),
                 test::made_event(kType, {12})};
  made.events[0].name = "cpu-clock";
  made.events[0].attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  made.events[1].name = "task-clock";
  made.events[2].name = "context-switches";
  const auto sample = [&](const std::string& payload) {
    made.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload);
  };
  // Counters and their ids.
  sample(test::words(10, kCode, kTask, 1, 5, 2, 5, 10, 3, 11));
  sample(test::words(10, kCode, kTask, 2, 4, 2, 9, 10, 3, 11));
  sample(test::words(12, kCode, kTask, 3, 1000));
  sample(test::words(10, kCode, kTask, 4, 1, 1, 1, 99));  // an event that is not in the file
  constexpr unsigned kDescription = 12;
  made.features[kDescription] = made.description();
  const test::TempDir directory;
  const auto read = read_profile(directory.file("perf.data", made.bytes()), {});
  ASSERT_TRUE(std::holds_alternative<Profile>(read));
  const auto& profile = std::get<Profile>(read);
  std::vector<std::string> samples;
  for (const auto& each : profile.samples) {
    samples.push_back(fmt::format("{} {}", profile.events.at(each.event).name, each.period));
  }
  EXPECT_THAT(samples,
              ElementsAre("cpu-clock 5", "task-clock 3", "cpu-clock 4", "context-switches 1000"));
  EXPECT_EQ(profile.events.at(2).unit, Unit::kWaits);
  EXPECT_THAT(profile.notes, ElementsAre("1 samples cannot be read"));
}

// `record --what memory`, and system calls whose samples have their own periods.
class MemoryReader : public testing::Test {
 protected:
  // Event, unit and period of each sample.
  static std::vector<std::string> read(bool each_hit, std::uint64_t period) {
    constexpr std::uint64_t kType =
        PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
    constexpr std::uint64_t kTask = std::uint64_t{7} << 32U | 7U;
    test::MadePerfData made;
    for (const auto* const name : {"mmap", "read", "brk"}) {
      auto& event = made.events.emplace_back(
          test::made_event(kType | PERF_SAMPLE_PERIOD, {10 + made.events.size()}));
      event.name = fmt::format("syscalls:sys_enter_{}", name);
      event.attr.type = PERF_TYPE_TRACEPOINT;
      event.attr.config = made.events.size();
      event.attr.sample_period = 1;
      event.attr.freq = each_hit ? 0 : 1;
    }
    for (std::uint64_t id = 10; id < 13; ++id) {
      made.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                                     test::words(id, kCode, kTask, id, period));
    }
    constexpr unsigned kDescription = 12;
    made.features[kDescription] = made.description();
    const test::TempDir directory;
    const auto read = read_profile(directory.file("perf.data", made.bytes()), {});
    std::vector<std::string> samples;
    if (const auto* const profile = std::get_if<Profile>(&read)) {
      for (const auto& each : profile->samples) {
        const auto& event = profile->events.at(each.event);
        samples.push_back(fmt::format("{}{} {}", event.name,
                                      event.unit == Unit::kBytes   ? " bytes"
                                      : event.unit == Unit::kCalls ? " ns"
                                                                   : "",
                                      each.period));
      }
    }
    return samples;
  }
};

TEST_F(MemoryReader, AddsTheCallsUpAsOneEvent) {
  EXPECT_THAT(read(true, 8192), ElementsAre("memory bytes 8192", "syscalls:sys_enter_read ns 8192",
                                            "memory bytes 8192"));
}

TEST_F(MemoryReader, LeavesCallsThatAreOnlyCounted) {
  EXPECT_THAT(read(true, 1), ElementsAre("syscalls:sys_enter_mmap 1", "syscalls:sys_enter_read 1",
                                         "syscalls:sys_enter_brk 1"));
  EXPECT_THAT(read(false, 8), ElementsAre("syscalls:sys_enter_mmap 8", "syscalls:sys_enter_read 8",
                                          "syscalls:sys_enter_brk 8"));
}

}  // namespace
}  // namespace pyinject::report
