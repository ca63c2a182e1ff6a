#include "targets/examine_all.hpp"

#include "pyinject/fake/detector.hpp"
#include "support/patience.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace pyinject::targets {
namespace {

using base::Pid;
using python::Reason;
using std::chrono::milliseconds;

// Some processes keep a processor busy until they are given up.
class SlowDetector : public fake::Detector {
 public:
  explicit SlowDetector(std::set<Pid> slow) : slow_{std::move(slow)} {}

  using fake::Detector::detect;
  python::Detection detect(Pid pid, const base::Cancellation& cancellation) override {
    ++calls;
    const auto deadline = base::Deadline::after(test::kPatience);
    while (slow_.contains(pid) && !cancellation.stopped() && !deadline.expired()) {
      // Works.
    }
    return fake::Detector::detect(pid, cancellation);
  }

  std::atomic<int> calls = 0;  // NOLINT(*-non-private-member-variables-in-classes): a book

 private:
  std::set<Pid> slow_;
};

// Waits for something, as for a disk, longer than any process may work.
class StalledDetector : public fake::Detector {
 public:
  using fake::Detector::detect;
  python::Detection detect(Pid pid, const base::Cancellation& cancellation) override {
    const auto answer = base::Deadline::after(milliseconds{500});
    while (!answer.expired() && !cancellation.stopped()) {
      std::this_thread::sleep_for(milliseconds{1});
    }
    return fake::Detector::detect(pid, cancellation);
  }
};

bool is_target(const Examined& one) {
  return std::holds_alternative<python::Target>(one.detection);
}

bool is_not_examined(const Examined& one) {
  const auto* const refused = std::get_if<python::Refused>(&one.detection);
  return refused != nullptr && refused->refusal.reason == Reason::kNotExamined;
}

TEST(ExamineAll, AnswersInTheOrderOfThePids) {
  SlowDetector detector{{}};
  detector.refusals[Pid{100'002}] = Reason::kNotPython;
  const auto all = examine_all(detector, {Pid{100'001}, Pid{100'002}, Pid{100'003}},
                               base::Cancellation::never(), kPatienceNamed);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(std::get<python::Target>(all[0].detection).id.pid, Pid{100'001});
  EXPECT_FALSE(is_target(all[1]));
  EXPECT_EQ(std::get<python::Target>(all[2].detection).id.pid, Pid{100'003});
}

TEST(ExamineAll, ExaminesTheOthersWhenSomeTakeUntilTheirTimeIsUp) {
  std::set<Pid> slow;
  std::vector<Pid> pids;
  for (int number = 0; number < 12; ++number) {
    pids.emplace_back(100'000 + number);
    slow.insert(pids.back());
  }
  pids.emplace_back(200'000);
  SlowDetector detector{slow};
  const auto all = examine_all(detector, pids, base::Cancellation::never(), milliseconds{20});
  EXPECT_TRUE(is_target(all.back()));
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_TRUE(is_not_examined(all[i])) << i;
  }
}

TEST(ExamineAll, GivesThoseThatNeedMoreTimeASecondTurn) {
  SlowDetector detector{{Pid{100'001}}};
  (void)examine_all(detector, {Pid{100'001}, Pid{100'002}}, base::Cancellation::never(),
                    milliseconds{20});
  EXPECT_EQ(detector.calls, 3);
}

TEST(ExamineAll, WaitsForTheMachine) {
  StalledDetector detector;
  const auto all = examine_all(detector, {Pid{100'001}, Pid{100'002}}, base::Cancellation::never(),
                               milliseconds{20});
  EXPECT_TRUE(is_target(all[0]));
  EXPECT_TRUE(is_target(all[1]));
}

TEST(ExamineAll, EndsWhenItIsCancelled) {
  std::vector<Pid> pids;
  for (int number = 0; number < 1000; ++number) {
    pids.emplace_back(100'000 + number);
  }
  SlowDetector detector{{pids.begin(), pids.end()}};
  base::Cancellation cancellation;
  std::thread canceller{[&] {
    while (detector.calls == 0) {
      std::this_thread::yield();
    }
    cancellation.cancel();
  }};
  const auto all = examine_all(detector, pids, cancellation, std::chrono::hours{1});
  canceller.join();
  EXPECT_TRUE(is_not_examined(all.back()));
}

}  // namespace
}  // namespace pyinject::targets
