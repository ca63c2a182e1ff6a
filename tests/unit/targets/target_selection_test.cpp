#include "pyinject/targets/target_selection.hpp"

#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/patience.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include <sched.h>
#include <unistd.h>

namespace pyinject::session {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;

TEST(ChildrenOf, AreOfTheNextGenerationOnly) {
  base::Child child{{.argv = {"sh", "-c", "trap 'kill $!; exit' TERM; sleep 1000 & wait"}}};
  const auto deadline = base::Deadline::after(test::kPatience);
  std::vector<base::Pid> grandchildren;
  while (grandchildren.empty() && !deadline.expired()) {
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
}  // namespace pyinject::session
