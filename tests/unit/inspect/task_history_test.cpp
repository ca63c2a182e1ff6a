#include "inspect/task_history.hpp"

#include <gtest/gtest.h>

namespace pyinject::inspect {
namespace {

using std::chrono::seconds;

python::AsyncTask waiting(std::uint64_t address, std::uint64_t future, std::uint32_t line) {
  return {.address = address,
          .loop = 1,
          .name = "t",
          .awaits = {{.names = {.qualname = "f", .file = "a.py", .first_line = 1}, .line = line}},
          .waits_for = future,
          .awaited_by = {}};
}

class TaskHistoryTest : public testing::Test {
 protected:
  std::map<std::uint64_t, std::chrono::nanoseconds> add(std::vector<python::AsyncTask> tasks,
                                                        int second, int pid = 7) {
    ProcessSnapshot snapshot;
    snapshot.pid = base::Pid{pid};
    snapshot.tasks = std::move(tasks);
    history_.add(snapshot, seconds{second});
    return snapshot.same_await;
  }
  TaskHistory history_;
};

TEST_F(TaskHistoryTest, CountsFromTheFirstSnapshotThatShowsTheAwait) {
  EXPECT_TRUE(add({waiting(1, 10, 5), waiting(2, 20, 5)}, 100).empty());
  EXPECT_EQ(add({waiting(1, 10, 5), waiting(2, 21, 5)}, 103),
            (std::map<std::uint64_t, std::chrono::nanoseconds>{{1, seconds{3}}}));
  EXPECT_EQ(add({waiting(1, 10, 5), waiting(2, 21, 5)}, 104),
            (std::map<std::uint64_t, std::chrono::nanoseconds>{{1, seconds{4}}, {2, seconds{1}}}));
  EXPECT_TRUE(add({waiting(1, 10, 6)}, 105).empty());
}

TEST_F(TaskHistoryTest, ATaskThatRunsOrIsUncertainOrReadyHasMoved) {
  const auto same = waiting(1, 10, 5);
  auto running = same;
  running.state = python::AsyncTask::State::kRunning;
  auto uncertain = same;
  uncertain.certain = false;
  const auto ready = waiting(1, 0, 5);
  for (const auto& other : {running, uncertain, ready}) {
    EXPECT_TRUE(add({same}, 1).empty());
    EXPECT_TRUE(add({other}, 2).empty());
  }
  EXPECT_TRUE(add({same}, 3).empty());
  EXPECT_TRUE(add({}, 4).empty());
  EXPECT_TRUE(add({same}, 5).empty());
}

TEST_F(TaskHistoryTest, ProcessesAreApart) {
  EXPECT_TRUE(add({waiting(1, 10, 5)}, 1, 7).empty());
  EXPECT_TRUE(add({waiting(1, 10, 5)}, 2, 8).empty());
  EXPECT_EQ(add({waiting(1, 10, 5)}, 3, 7).size(), 1U);
}

}  // namespace
}  // namespace pyinject::inspect
