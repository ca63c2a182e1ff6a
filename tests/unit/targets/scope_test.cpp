#include "pyinject/targets/scope.hpp"

#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/patience.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

namespace pyinject::targets {
namespace {

using base::Pid;
using testing::ElementsAre;
using testing::IsEmpty;
using watch::Change;
using watch::ProcessEvent;

const Pid kSelf{::getpid()};

// The child's descriptors are closed, which its parent sees, before it has its name.
class Sleeper : public base::Child {
 public:
  Sleeper() : Child{{.argv = {"sleep", "60"}}} {
    const auto deadline = base::Deadline::after(test::kPatience);
    while (procfs::read_stat(pid())->name != "sleep" && !deadline.expired()) {
      ::sched_yield();
    }
  }
};

TEST(ScopeTest, IsByUserNameAndControlGroup) {
  const Sleeper child;
  EXPECT_TRUE(is_in({}, child.pid()));
  EXPECT_TRUE(is_in({.user = ::geteuid()}, child.pid()));
  EXPECT_FALSE(is_in({.user = ::geteuid() + 1}, child.pid()));
  EXPECT_TRUE(is_in({.command = "sl*p"}, child.pid()));
  EXPECT_FALSE(is_in({.command = "sl"}, child.pid()));
  EXPECT_FALSE(is_in({.user = ::geteuid() + 1, .command = "sleep"}, child.pid()));
  EXPECT_TRUE(is_in({.cgroup = ""}, child.pid()));
  EXPECT_FALSE(is_in({.cgroup = "there/is/none"}, child.pid()));
}

TEST(ScopeTest, ANameIsAWordOfTheCommandLine) {
  const std::vector<std::string> uvicorn{"python3", "-m", "uvicorn", "/srv/shop.py:app",
                                         "--workers=4"};
  for (const auto* const name : {"uvicorn", "shop.py", "shop", "app", "sh?p", "python3", "srv"}) {
    EXPECT_TRUE(has_word(uvicorn, name)) << name;
  }
  for (const auto* const name : {"hop", "sho", "py", "", "shop.py:app"}) {
    EXPECT_FALSE(has_word(uvicorn, name)) << name;
  }
  EXPECT_TRUE(has_word({"gunicorn: worker [shop]"}, "shop"));
  EXPECT_FALSE(has_word({}, "*"));
  EXPECT_FALSE(has_word({"", "::"}, "*"));
}

TEST(ScopeTest, UsersHaveNamesAndNumbers) {
  EXPECT_EQ(user_by_name("root"), 0U);
  EXPECT_EQ(user_by_name("1234"), 1234U);
  EXPECT_EQ(user_by_name("no such user"), std::nullopt);
  EXPECT_EQ(user_by_name("-1"), std::nullopt);
}

TEST(PopulationTest, TakesEveryProcessUnexamined) {
  auto target_set = TargetSet::of_scope({});
  EXPECT_TRUE(target_set.everybody());
  EXPECT_THAT(target_set.choose({Pid{5'000'001}}), ElementsAre(Pid{5'000'001}));
  EXPECT_TRUE(target_set.contains(Pid{5'000'002}));
  EXPECT_TRUE(target_set.ever_contained(5'000'003));
}

TEST(PopulationTest, ChildrenAreAsTheirParents) {
  auto target_set = TargetSet::of_scope({.user = ::geteuid()});
  EXPECT_THAT(target_set.choose({kSelf, Pid{5'000'001}}), ElementsAre(kSelf));
  const Pid child{5'000'002};
  EXPECT_TRUE(target_set.note({.change = Change::kForked, .pid = child, .parent = kSelf}));
  EXPECT_TRUE(target_set.contains(child));
  EXPECT_FALSE(target_set.note(
      {.change = Change::kForked, .pid = Pid{5'000'003}, .parent = Pid{5'000'001}}));
  EXPECT_FALSE(target_set.contains(Pid{5'000'003}));
}

TEST(PopulationTest, KeepsThoseThatHaveGone) {
  auto target_set = TargetSet::of_scope({.user = ::geteuid()});
  const Pid child{5'000'002};
  (void)target_set.choose({kSelf});
  (void)target_set.note({.change = Change::kForked, .pid = child, .parent = kSelf});
  (void)target_set.note({.change = Change::kExited, .pid = child});
  EXPECT_FALSE(target_set.contains(child));
  EXPECT_TRUE(target_set.ever_contained(5'000'002));
  EXPECT_FALSE(target_set.ever_contained(5'000'001));
}

TEST(PopulationTest, ANewNameIsLookedAt) {
  const Sleeper child;
  auto target_set = TargetSet::of_scope({.command = "sleep"});
  EXPECT_THAT(target_set.choose({}), IsEmpty());
  EXPECT_TRUE(target_set.note({.change = Change::kNamed, .pid = child.pid()}));
  EXPECT_FALSE(target_set.note({.change = Change::kNamed, .pid = child.pid()}))
      << "already in the set";
}

TEST(PopulationTest, FamiliesAreByDescentWhateverTheyRun) {
  const Sleeper child;
  auto target_set = TargetSet::of_families({kSelf});
  EXPECT_THAT(target_set.choose({child.pid(), Pid{1}}), ElementsAre(child.pid()));
  EXPECT_FALSE(target_set.note({.change = Change::kExec, .pid = child.pid()}));
  EXPECT_TRUE(target_set.contains(child.pid()));
  const Pid grandchild{5'000'002};
  EXPECT_TRUE(
      target_set.note({.change = Change::kForked, .pid = grandchild, .parent = child.pid()}));
  (void)target_set.note({.change = Change::kExited, .pid = child.pid()});
  EXPECT_TRUE(target_set.contains(grandchild)) << "an orphan remains in the family";
  EXPECT_FALSE(target_set.note({.change = Change::kAppeared, .pid = Pid{1}}));
}

}  // namespace
}  // namespace pyinject::targets
