#include "weave/comm_history.hpp"

#include "perfdata/record.hpp"
#include "unit/weave/made_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyinject::weave {
namespace {

std::string name_of(const CommHistory& history, std::uint32_t tid, std::uint64_t begin) {
  const auto* const name = history.find(1, tid, begin);
  return name == nullptr ? "" : *name;
}

TEST(CommHistory, TellsThreadsWithTheSameTidApart) {
  CommHistory history;
  history.add(1, 2, 100, "first");
  history.add(1, 2, 200, "second");
  history.add(1, 2, 300, "second");  // of another thread with the same name
  for (const std::uint64_t start : {150U, 250U}) {
    history.starts(2, start);
  }
  EXPECT_EQ(name_of(history, 2, 0), "first");
  EXPECT_EQ(name_of(history, 2, 150), "second");
  EXPECT_EQ(name_of(history, 2, 250), "second");
  EXPECT_EQ(history.begin_of(2, 149), 0U);
  EXPECT_EQ(history.begin_of(2, 260), 250U);
  EXPECT_EQ(history.find(7, 2, 0), nullptr) << "of another process";
  EXPECT_EQ(name_of(history, 3, 0), "");
}

TEST(CommHistory, TakesTheLastNameOfARenamedThread) {
  CommHistory history;
  history.add(1, 2, 100, "Thread-1");
  history.add(1, 2, 120, "reader");
  EXPECT_EQ(name_of(history, 2, 0), "reader");
}

TEST(CommHistory, NeedsNoClock) {
  CommHistory history;
  history.add(1, 2, 0, "reader");
  history.starts(2, 50);
  EXPECT_EQ(name_of(history, 2, 50), "reader");
}

TEST(CommHistory, IsBounded) {
  CommHistory history;
  for (std::uint32_t tid = 1; tid <= CommHistory::kMostEntries + 10; ++tid) {
    history.add(1, tid, 1, "name");
  }
  EXPECT_EQ(name_of(history, CommHistory::kMostEntries, 0), "name");
  EXPECT_EQ(name_of(history, CommHistory::kMostEntries + 1, 0), "");
}

class Comms : public MadeProcess {
 protected:
  void comm(std::uint64_t time, std::uint32_t tid, const std::string& name) {
    data_.data += test::made_record(PERF_RECORD_COMM, 0,
                                    test::packed(kPid, tid) + test::padded(name) + behind(time));
  }
  void start(std::uint64_t time, std::uint32_t tid) {
    data_.data += test::made_record(PERF_RECORD_FORK, 0,
                                    test::packed(kPid, kPid, tid, kPid, time) + behind(time));
  }
  // The names of TID in the finished file, each with its time.
  std::vector<std::string> names(std::uint32_t tid) {
    std::vector<std::string> found;
    auto input = output();
    while (const auto record = input.next()) {
      const auto command = perfdata::parse_command(*record);
      if (command && command->tid == tid) {
        found.push_back(command->name + " " + std::to_string(input.time_of(*record).value_or(0)));
      }
    }
    return found;
  }
};

TEST_F(Comms, AreWrittenWherePerfHasOthers) {
  CommHistory history;
  history.add(kPid, 20, 90, "reader");
  history.add(kPid, 21, 90, "a name that is too long for the kernel");
  context_.comms = &history;
  comm(0, kPid, "python3");
  comm(0, 20, "python3");
  start(50, 21);
  comm(60, 20, "chosen");
  weave();
  EXPECT_THAT(names(kPid), testing::ElementsAre("python3 0"));
  EXPECT_THAT(names(20), testing::ElementsAre("reader 0", "chosen 60"));
  EXPECT_THAT(names(21), testing::ElementsAre("a name that is  50"));
}

TEST_F(Comms, AreWrittenForThreadsThatPerfNeverNamed) {
  CommHistory history;
  history.add(kPid, kPid, 90, "reader");
  context_.comms = &history;
  sample(50, "c");
  sample(60, "c");
  weave();
  EXPECT_THAT(names(kPid), testing::ElementsAre("reader 0"));
}

}  // namespace
}  // namespace pyinject::weave
