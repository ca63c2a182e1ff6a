#include "watch/process_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace pyinject::watch {
namespace {

using base::Pid;
using testing::ElementsAre;
using testing::IsEmpty;

class ProcessTableTest : public testing::Test {
 protected:
  // "+5" forked, "!5" appeared, "x5" exec, "n5" named, "-5" exited.
  std::vector<std::string> update() {
    std::vector<Pid> present;
    for (const auto& [pid, seen] : processes_) {
      present.push_back(pid);
    }
    std::vector<std::string> told;
    for (const auto& event : table_.update(present, [this](Pid pid) { return look(pid); })) {
      const std::map<Change, std::string> signs{{Change::kForked, "+"},
                                                {Change::kAppeared, "!"},
                                                {Change::kExec, "x"},
                                                {Change::kNamed, "n"},
                                                {Change::kExited, "-"}};
      told.push_back(signs.at(event.change) + std::to_string(event.pid.value()));
    }
    return told;
  }
  // All events until each process was polled.
  std::vector<std::string> update_all() {
    std::vector<std::string> told;
    for (unsigned call = 0; call < ProcessTable::kRound; ++call) {
      const auto some = update();
      told.insert(told.end(), some.begin(), some.end());
    }
    return told;
  }
  std::optional<Seen> look(Pid pid) {
    ++looks_;
    if (vanished_.contains(pid)) {
      return std::nullopt;
    }
    return processes_.at(pid);
  }
  void start(pid_t pid, std::uint64_t time = 1) {
    processes_[Pid{pid}] = Seen{
        .start_time = time, .parent = Pid{1}, .image = {1, 2, 3}, .name = "some", .ended = false};
  }

  std::map<Pid, Seen> processes_;
  std::set<Pid> vanished_;
  ProcessTable table_;
  std::size_t looks_ = 0;
};

TEST_F(ProcessTableTest, ReportsStartsAndExits) {
  start(5);
  EXPECT_THAT(update(), ElementsAre("+5", "!5"));
  start(3);
  start(9);
  EXPECT_THAT(update(), ElementsAre("+3", "!3", "+9", "!9"));
  processes_.erase(Pid{5});
  EXPECT_THAT(update(), ElementsAre("-5", "!3", "!9"));
  processes_.clear();
  EXPECT_THAT(update(), ElementsAre("-3", "-9"));
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(ProcessTableTest, SeesAtOnceWhatAYoungOneBecomes) {
  start(5);
  static_cast<void>(update());
  processes_[Pid{5}].image = {7, 8, 9};
  processes_[Pid{5}].name = "other";
  EXPECT_THAT(update(), ElementsAre("x5", "!5"));
  processes_[Pid{5}].name = "third";
  EXPECT_THAT(update(), ElementsAre("n5", "!5"));
  EXPECT_THAT(update(), IsEmpty());
}

// At the first poll the loader may not have mapped the interpreter yet, and mappings are not
// reported.
TEST_F(ProcessTableTest, ReportsANewProcessTwice) {
  start(5);
  static_cast<void>(update());
  EXPECT_THAT(update(), IsEmpty()) << "pre-existing";
  start(6);
  EXPECT_THAT(update(), ElementsAre("+6", "!6"));
  EXPECT_THAT(update(), ElementsAre("!6"));
  EXPECT_THAT(update(), IsEmpty());
}

TEST_F(ProcessTableTest, LooksAtOldOnesInTurns) {
  for (pid_t pid = 1; pid <= 200; ++pid) {
    start(pid);
  }
  static_cast<void>(update_all());
  static_cast<void>(update_all());
  looks_ = 0;
  EXPECT_THAT(update_all(), IsEmpty());
  EXPECT_EQ(looks_, 200U);
  processes_[Pid{77}].image = {7, 8, 9};
  EXPECT_THAT(update_all(), ElementsAre("x77", "!77"));
}

// As with a command that is held back during the first poll of a machine full of other processes.
TEST_F(ProcessTableTest, TheNewestOfThoseThatWereThereIsYoung) {
  for (pid_t pid = 1; pid <= 1000; ++pid) {
    start(pid);
  }
  start(1001, 1000);
  static_cast<void>(update());
  processes_[Pid{1001}].image = {7, 8, 9};
  EXPECT_THAT(update(), ElementsAre("x1001", "!1001"));
}

TEST_F(ProcessTableTest, PollsFewOfManyYoungProcesses) {
  for (pid_t pid = 1; pid <= 10000; ++pid) {
    start(pid);
  }
  static_cast<void>(update());
  looks_ = 0;
  static_cast<void>(update());
  EXPECT_LE(looks_, ProcessTable::kMostYoung + 10000 / ProcessTable::kRound);
}

TEST_F(ProcessTableTest, TellsAReusedPidFromItsPredecessor) {
  start(5);
  static_cast<void>(update());
  start(5, 2);
  EXPECT_THAT(update(), ElementsAre("-5", "+5", "!5"));
}

TEST_F(ProcessTableTest, AZombieHasEndedOnce) {
  start(5);
  static_cast<void>(update());
  processes_[Pid{5}].ended = true;
  EXPECT_THAT(update(), ElementsAre("-5"));
  EXPECT_THAT(update_all(), IsEmpty());
  processes_.clear();
  EXPECT_THAT(update(), IsEmpty());
}

TEST_F(ProcessTableTest, OmitsAProcessThatVanishes) {
  start(5);
  vanished_.insert(Pid{5});
  EXPECT_THAT(update(), IsEmpty());
  EXPECT_EQ(table_.size(), 0U);
}

}  // namespace
}  // namespace pyinject::watch
