// The installed test doubles, as far as our own tests do not use them.
#include "pyinject/fake/manager.hpp"
#include "pyinject/fake/process_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>

namespace pyinject::fake {
namespace {

using base::Pid;
using testing::ElementsAre;
using testing::IsEmpty;

bool readable(int fd) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(FakeManager, DoesWhatItsScriptSays) {
  Manager manager;
  manager.refusals[Pid{1}] = python::Reason::kNotPython;
  manager.activate_refusals[Pid{2}] = python::Reason::kDeadline;
  manager.deactivate_refusals[Pid{3}] = python::Reason::kStopDeadline;
  std::vector<Pid> told;
  manager.on_activation([&](const auto& active) { told.push_back(active.target.id.pid); });

  auto selection = manager.select({Pid{1}, Pid{2}, Pid{3}});
  EXPECT_FALSE(selection.complete);
  EXPECT_TRUE(manager.activate_all(std::move(selection.targets)));
  EXPECT_THAT(told, ElementsAre(Pid{3}));
  EXPECT_EQ(manager.activate_late(Pid{4}).late, targets::Late::kActive);
  EXPECT_EQ(manager.activate_late(Pid{4}).late, targets::Late::kKnown);
  EXPECT_NE(manager.forget(Pid{4}), nullptr);
  EXPECT_FALSE(manager.deactivate_all());
  EXPECT_EQ(manager.stats().summary(),
            "2 processes recorded, 2 skipped, 1 not switched off (1 not_python, 1 stop_deadline, 1 "
            "deadline)");
  EXPECT_THAT(manager.calls,
              ElementsAre("select 1", "select 2", "select 3", "activate 2", "activate 3", "late 4",
                          "late 4", "forget 4", "deactivate 3"));
}

TEST(FakeManager, ListenersMayAskIt) {
  Manager manager;
  std::vector<std::size_t> active;
  manager.on_activation([&](const auto& /*active*/) {
    active.push_back(manager.active().size());
    EXPECT_EQ(manager.forget(Pid{9}), nullptr);
  });
  EXPECT_TRUE(manager.activate_all(manager.select({Pid{1}, Pid{2}}).targets));
  EXPECT_EQ(manager.activate_late(Pid{4}).late, targets::Late::kActive);
  EXPECT_THAT(active, ElementsAre(1U, 2U, 3U));
}

TEST(FakeProcessWatch, TellsWhatItWasTold) {
  ProcessWatch watch;
  EXPECT_FALSE(readable(watch.fd()));
  watch.tell({.change = watch::Change::kForked, .pid = Pid{7}, .parent = Pid{1}});
  watch.tell({.change = watch::Change::kExited, .pid = Pid{7}});
  EXPECT_TRUE(readable(watch.fd()));
  EXPECT_EQ(watch.take().size(), 2U);
  EXPECT_FALSE(readable(watch.fd()));
  EXPECT_THAT(watch.take(), IsEmpty());
  EXPECT_TRUE(watch.report_write(Pid{7}, 0x1000));
  EXPECT_EQ(watch.watched.size(), 1U);
}

}  // namespace
}  // namespace pyinject::fake
