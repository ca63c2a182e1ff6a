#include "targets/late_arrivals.hpp"

#include "pyinject/base/deadline.hpp"
#include "support/fake_python.hpp"
#include "support/patience.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <set>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace pyinject::targets {
namespace {

using base::Pid;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using watch::Change;
using watch::ProcessEvent;

constexpr Pid kOne{5'000'001};
constexpr Pid kChild{5'000'002};
constexpr base::RemoteAddress kInitialized{0x1234000};

class ScriptedWatch : public watch::ProcessWatch {
 public:
  explicit ScriptedWatch(bool& breakpoints, std::vector<std::pair<Pid, std::uint64_t>>& asked)
      : breakpoints_{breakpoints}, asked_{asked} {}
  int fd() const override { return events_.get(); }
  std::vector<ProcessEvent> take() override {
    std::uint64_t count = 0;
    (void)!::read(events_.get(), &count, sizeof count);
    return std::exchange(pending_, {});
  }
  bool report_write(Pid pid, std::uint64_t address) override {
    asked_.emplace_back(pid, address);
    return breakpoints_;
  }
  std::string_view name() const override { return "the test"; }

  void tell(ProcessEvent event) {
    pending_.push_back(std::move(event));
    const std::uint64_t one = 1;
    (void)!::write(events_.get(), &one, sizeof one);
  }

 private:
  bool& breakpoints_;
  std::vector<std::pair<Pid, std::uint64_t>>& asked_;
  base::UniqueFd events_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<ProcessEvent> pending_;
};

// Gives the test's answers and records the attempted pids.
class ScriptedManager : public Manager {
 public:
  Selection select(const std::vector<Pid>& /*pids*/, bool /*named*/) override { return {}; }
  void on_activation(Listener /*listener*/) override {}
  bool activate_all(std::vector<python::Target> /*targets*/) override { return true; }
  LateArrival activate_late(Pid pid) override {
    {
      const std::scoped_lock lock{mutex_};
      tried_.push_back(pid);
    }
    return answer ? answer(pid) : LateArrival{.late = Late::kActive};
  }
  void end_late_activations() override { ended = true; }
  void missed(Pid pid) override { missed_pids.push_back(pid); }
  std::shared_ptr<const ActiveTarget> forget(Pid pid) override {
    forgotten.push_back(pid);
    return nullptr;
  }
  bool deactivate_all(const std::vector<python::Target>& /*others*/) override { return true; }
  ActiveTargets active() const override { return {}; }
  const Stats& stats() const override { return stats_; }

  std::vector<Pid> tried() {
    const std::scoped_lock lock{mutex_};
    return tried_;
  }

  std::function<LateArrival(Pid)> answer;
  std::atomic<bool> ended = false;
  std::vector<Pid> forgotten;
  std::vector<Pid> missed_pids;

 private:
  std::mutex mutex_;
  std::vector<Pid> tried_;
  Stats stats_;
};

class LateArrivalsTest : public testing::Test {
 protected:
  void begin(TargetSet target_set = TargetSet::of_scope({})) {
    target_set_ = std::move(target_set);
    auto watch = std::make_unique<ScriptedWatch>(breakpoints_, asked_);
    watch_ = watch.get();
    arrivals_ = std::make_unique<LateArrivals>(
        std::move(watch), detector_, manager_, logger_, target_set_,
        ArrivalListener{
            .forked = [this](Pid child) { forked_.push_back(child); },
            .ended = [this](Pid pid, const auto& /*active*/) { ended_.push_back(pid); }});
  }
  // Handles events until TRUE_NOW, which a thread may make true without an event.
  [[nodiscard]] bool handle_until(const std::function<bool()>& true_now) {
    const auto deadline = base::Deadline::after(test::kPatience);
    while (!true_now()) {
      if (deadline.expired()) {
        return false;
      }
      constexpr int kLookAgain = 1;  // ms
      pollfd ready{.fd = arrivals_->fd(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, kLookAgain) == 1) {
        arrivals_->handle();
      }
    }
    return true;
  }
  // Delivers EVENTS and handles them, including finished attempts.
  void handle_all(std::vector<ProcessEvent> events) {
    for (auto& event : events) {
      watch_->tell(std::move(event));
    }
    arrivals_->handle();
  }
  [[nodiscard]] bool tried(std::vector<Pid> pids) {
    return handle_until([&] { return manager_.tried() == pids; });
  }

  bool breakpoints_ = true;
  std::vector<std::pair<Pid, std::uint64_t>> asked_;
  test::FakeDetector detector_;
  ScriptedManager manager_;
  test::RecordingLogger logger_;
  TargetSet target_set_ = TargetSet::of_scope({});
  std::vector<Pid> forked_;
  std::vector<Pid> ended_;
  ScriptedWatch* watch_ = nullptr;
  std::unique_ptr<LateArrivals> arrivals_;
};

TEST_F(LateArrivalsTest, AProcessThatMapsAnInterpreterIsTried) {
  begin();
  handle_all({{.change = Change::kExec, .pid = kOne},
              {.change = Change::kMapped, .pid = kOne, .path = "/usr/lib/libc.so.6"},
              {.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"}});
  EXPECT_TRUE(tried({kOne}));
}

TEST_F(LateArrivalsTest, OthersAreLeftAlone) {
  begin();
  handle_all({{.change = Change::kForked, .pid = kOne, .parent = Pid{1}},
              {.change = Change::kExec, .pid = kOne},
              {.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/true"},
              {.change = Change::kExited, .pid = kOne}});
  arrivals_->stop();
  EXPECT_THAT(manager_.tried(), IsEmpty());
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(LateArrivalsTest, AnInterpreterThatIsBeingStartedIsTriedWhenItIsReady) {
  begin();
  std::atomic<bool> ready = false;
  manager_.answer = [&](Pid) {
    return ready ? LateArrival{.late = Late::kActive}
                 : LateArrival{.late = Late::kNotYet, .initialized = kInitialized};
  };
  handle_all({{.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"}});
  ASSERT_TRUE(tried({kOne, kOne})) << "again after the breakpoint is set: it may be ready by now";
  EXPECT_THAT(asked_, ElementsAre(Pair(kOne, kInitialized.value())));
  ready = true;
  handle_all({{.change = Change::kWritten, .pid = kOne}});
  EXPECT_TRUE(tried({kOne, kOne, kOne}));
}

TEST_F(LateArrivalsTest, PollsIfThereAreNoBreakpoints) {
  begin();
  breakpoints_ = false;
  manager_.answer = [&](Pid) {
    return LateArrival{.late = Late::kNotYet, .initialized = kInitialized};
  };
  handle_all({{.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"}});
  EXPECT_TRUE(handle_until([&] { return manager_.tried().size() >= 4; }));
}

TEST_F(LateArrivalsTest, TakesForksForPythonUnlessTheyExecAtOnce) {
  begin();
  arrivals_->add_known({kOne});
  handle_all({{.change = Change::kForked, .pid = kChild, .parent = kOne}});
  ASSERT_TRUE(tried({kChild}));
  const Pid other{5'000'003};
  handle_all({{.change = Change::kForked, .pid = other, .parent = kOne},
              {.change = Change::kExec, .pid = other},
              {.change = Change::kForked, .pid = Pid{5'000'004}, .parent = kChild}});
  EXPECT_TRUE(tried({kChild, Pid{5'000'004}}));
}

TEST_F(LateArrivalsTest, ReportsInheritedTrampolinesAndExits) {
  begin();
  arrivals_->add_known({kOne});
  manager_.answer = [&](Pid pid) {
    python::Target target;
    target.id.pid = pid;
    return LateArrival{.late = Late::kInherited, .inherited = std::move(target)};
  };
  handle_all({{.change = Change::kForked, .pid = kChild, .parent = kOne}});
  ASSERT_TRUE(handle_until([&] { return !forked_.empty(); }));
  handle_all({{.change = Change::kExited, .pid = kChild}});
  EXPECT_THAT(ended_, ElementsAre(kChild));
}

TEST_F(LateArrivalsTest, RetriesAProcessThatExecsDuringTheAttempt) {
  begin();
  std::mutex hold;
  std::unique_lock held{hold};
  manager_.answer = [&](Pid) {
    const std::scoped_lock wait{hold};
    return LateArrival{.late = Late::kActive};
  };
  handle_all({{.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"}});
  ASSERT_TRUE(tried({kOne}));
  handle_all({{.change = Change::kExec, .pid = kOne},
              {.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"}});
  held.unlock();
  EXPECT_TRUE(handle_until([&] { return manager_.tried().size() > 1; }));
  EXPECT_THAT(manager_.forgotten, ElementsAre(kOne, kOne))
      << "the result of the first attempt is void";
}

TEST_F(LateArrivalsTest, AProgramThatIsMappedWhenTheLastTryEndsIsTriedToo) {
  begin();
  std::mutex hold;
  std::unique_lock held{hold};
  manager_.answer = [&](Pid) {
    const std::scoped_lock wait{hold};
    return LateArrival{.late = Late::kInherited};
  };
  arrivals_->add_known({kChild});
  handle_all({{.change = Change::kForked, .pid = kOne, .parent = kChild}});
  handle_all({{.change = Change::kExec, .pid = kOne}});
  held.unlock();
  pollfd ready{.fd = arrivals_->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, test::kPatienceMs), 1) << "the first attempt has not ended";
  handle_all({{.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"}});
  EXPECT_TRUE(tried({kOne, kOne}));
}

TEST_F(LateArrivalsTest, AChildThatWasNoPythonWhenItWasTriedIsTriedWhenItMapsOne) {
  begin();
  std::mutex hold;
  std::unique_lock held{hold};
  manager_.answer = [&](Pid) {
    const std::scoped_lock wait{hold};
    return LateArrival{.late = Late::kRefused};
  };
  arrivals_->add_known({kChild});
  handle_all({{.change = Change::kForked, .pid = kOne, .parent = kChild}});
  held.unlock();
  pollfd ready{.fd = arrivals_->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, test::kPatienceMs), 1) << "the first attempt has not ended";
  arrivals_->handle();
  handle_all({{.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"}});
  EXPECT_TRUE(tried({kOne, kOne}));
}

// After lost records, each process is checked again, even one that was settled as another program.
TEST_F(LateArrivalsTest, RetriesAProcessAfterAMissedExec) {
  begin();
  arrivals_->add_known({kOne});
  bool first = true;
  manager_.answer = [&](Pid) {
    return LateArrival{.late =
                           std::exchange(first, false) ? Late::kDifferentProgram : Late::kActive};
  };
  handle_all({{.change = Change::kAppeared, .pid = kOne}});
  EXPECT_TRUE(tried({kOne, kOne}));
  EXPECT_THAT(manager_.forgotten, ElementsAre(kOne));
  EXPECT_THAT(ended_, ElementsAre(kOne));
}

TEST_F(LateArrivalsTest, TriesChildrenOfAPolledProcess) {
  begin();
  std::mutex hold;
  std::unique_lock held{hold};
  manager_.answer = [&](Pid) {
    const std::scoped_lock wait{hold};
    return LateArrival{.late = Late::kActive};
  };
  handle_all({{.change = Change::kAppeared, .pid = kOne}});
  held.unlock();
  pollfd ready{.fd = arrivals_->fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, test::kPatienceMs), 1) << "the first attempt has not ended";
  arrivals_->handle();
  handle_all({{.change = Change::kForked, .pid = kChild, .parent = kOne}});
  EXPECT_TRUE(tried({kOne, kChild}));
}

TEST_F(LateArrivalsTest, CountsProcessesThatExitBeforeTheAttempt) {
  begin();
  const Pid perf{1'000'005};
  arrivals_->ignore(perf);
  handle_all({{.change = Change::kMapped, .pid = perf, .path = "/usr/lib/libpython3.11.so.1.0"},
              {.change = Change::kExited, .pid = perf},
              {.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"},
              {.change = Change::kExited, .pid = kOne},
              {.change = Change::kMapped, .pid = kChild, .path = "/usr/bin/true"},
              {.change = Change::kExited, .pid = kChild}});
  EXPECT_TRUE(handle_until([&] { return !manager_.missed_pids.empty(); }));
  arrivals_->stop();
  arrivals_->handle();
  EXPECT_THAT(manager_.missed_pids, ElementsAre(kOne));
  EXPECT_THAT(manager_.tried(), IsEmpty());
}

TEST_F(LateArrivalsTest, CountsAProcessThatExecsDuringTheAttemptAndExitsEarly) {
  begin();
  std::mutex hold;
  std::unique_lock held{hold};
  manager_.answer = [&](Pid) {
    const std::scoped_lock wait{hold};
    return LateArrival{.late = Late::kNotYet};
  };
  arrivals_->add_known({kChild});
  handle_all({{.change = Change::kForked, .pid = kOne, .parent = kChild}});
  handle_all({{.change = Change::kExec, .pid = kOne},
              {.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"}});
  held.unlock();
  ASSERT_TRUE(handle_until([&] { return manager_.tried().size() > 1; }));
  handle_all({{.change = Change::kExited, .pid = kOne}});
  EXPECT_TRUE(handle_until([&] { return !manager_.missed_pids.empty(); }));
  arrivals_->stop();
  arrivals_->handle();
  EXPECT_THAT(manager_.missed_pids, ElementsAre(kOne));
}

// The exit is reported after the attempt has ended, or during it.
TEST_F(LateArrivalsTest, CountsAProcessThatExitsBeforeItIsReadyOnce) {
  for (const auto late : {Late::kNotYet, Late::kGone, Late::kRefused, Late::kActive}) {
    for (const bool meanwhile : {true, false}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(late) << meanwhile);
      begin();
      manager_.missed_pids.clear();
      std::mutex hold;
      std::unique_lock held{hold};
      std::atomic<bool> begun = false;
      std::atomic<bool> answered = false;
      manager_.answer = [&](Pid) {
        begun = true;
        const std::scoped_lock wait{hold};
        answered = true;
        return LateArrival{.late = late};
      };
      handle_all({{.change = Change::kMapped, .pid = kOne, .path = "/usr/bin/python3"}});
      if (!meanwhile) {
        held.unlock();
      }
      ASSERT_TRUE(handle_until([&] { return meanwhile ? begun.load() : answered.load(); }));
      handle_all({{.change = Change::kExited, .pid = kOne}});
      if (meanwhile) {
        held.unlock();
        pollfd ready{.fd = arrivals_->fd(), .events = POLLIN, .revents = 0};
        ASSERT_EQ(::poll(&ready, 1, test::kPatienceMs), 1);
        arrivals_->handle();
      }
      arrivals_->stop();
      arrivals_->handle();
      const bool counted = late == Late::kNotYet || late == Late::kGone;
      EXPECT_EQ(manager_.missed_pids.size(), counted ? 1U : 0U);
    }
  }
}

TEST_F(LateArrivalsTest, TriesOnlyProcessesInScope) {
  begin(TargetSet::of_families({kOne}));
  handle_all({{.change = Change::kForked, .pid = kChild, .parent = kOne},
              {.change = Change::kExec, .pid = kChild},
              {.change = Change::kMapped, .pid = kChild, .path = "/usr/bin/python3"},
              {.change = Change::kMapped, .pid = Pid{5'000'009}, .path = "/usr/bin/python3"}});
  ASSERT_TRUE(tried({kChild}));
  arrivals_->stop();
  EXPECT_THAT(manager_.tried(), ElementsAre(kChild));
}

TEST_F(LateArrivalsTest, NoneIsTriedAfterTheEnd) {
  begin();
  arrivals_->stop();
  EXPECT_TRUE(manager_.ended);
  handle_all({{.change = Change::kAppeared, .pid = kOne}});
  EXPECT_THAT(manager_.tried(), IsEmpty());
}

}  // namespace
}  // namespace pyinject::targets
