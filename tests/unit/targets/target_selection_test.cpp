#include "pyinject/targets/target_selection.hpp"

#include "procfs/stat.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/patience.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <optional>

#include <sched.h>
#include <unistd.h>

namespace pyinject::targets {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

TEST(ChildrenOf, AreOfTheNextGenerationOnly) {
  base::Child child{{.argv = {"sh", "-c", "trap 'kill $!; exit' TERM; sleep 1000 & wait"}}};
  const auto deadline = base::Deadline::after(test::kPatience);
  std::vector<base::Pid> grandchildren;
  // Before it executes sleep, it is a shell, which may lose the signal that is to end it.
  const auto sleeps = [&grandchildren] {
    const auto stat =
        grandchildren.empty() ? std::nullopt : procfs::read_stat(grandchildren.front());
    return stat && stat->name == "sleep";
  };
  while (!sleeps() && !deadline.expired()) {
    ::sched_yield();
    grandchildren = children_of({child.pid()});
  }
  ASSERT_EQ(grandchildren.size(), 1U);
  const auto children = children_of({base::Pid{::getpid()}});
  EXPECT_THAT(children, Contains(child.pid()));
  EXPECT_THAT(children, Not(Contains(grandchildren[0])));
  EXPECT_THAT(children_of(grandchildren), IsEmpty());
  child.send_signal(SIGTERM);
  EXPECT_TRUE(child.wait(deadline));
}

}  // namespace
}  // namespace pyinject::targets
