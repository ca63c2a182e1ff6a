#include "python/layout/layout_facts.hpp"

#include "python/layout/version_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::python {
namespace {

using testing::UnorderedElementsAre;

Version release(std::uint8_t minor, std::uint8_t micro) {
  return {.major = 3, .minor = minor, .micro = micro, .level = 0xf, .serial = 0};
}

TEST(LayoutFacts, HaveNoGaps) {
  std::uint8_t minor = 12;
  for (const auto& facts : all_layout_facts()) {
    EXPECT_EQ(facts.minor, minor++);
    EXPECT_EQ(layout_facts(release(facts.minor, 1)), &facts);
  }
  EXPECT_EQ(layout_facts(release(minor, 0)), nullptr);
  EXPECT_EQ(layout_facts({.major = 2, .minor = 12}), nullptr);
}

TEST(LayoutFacts, DependOnThePatchRelease) {
  EXPECT_TRUE(unmaps_used_arenas(release(12, 200)));
  EXPECT_TRUE(unmaps_used_arenas(release(13, 11)));
  EXPECT_FALSE(unmaps_used_arenas(release(13, 12)));
  EXPECT_TRUE(unmaps_used_arenas(release(14, 2)));
  EXPECT_FALSE(unmaps_used_arenas(release(14, 3)));
  EXPECT_FALSE(unmaps_used_arenas(release(15, 0)));
  EXPECT_FALSE(adds_code_watchers(release(12, 200)));
  EXPECT_FALSE(adds_code_watchers(release(13, 11)));
  EXPECT_TRUE(adds_code_watchers(release(13, 12)));
  EXPECT_TRUE(adds_code_watchers(release(14, 0)));
  EXPECT_TRUE(adds_code_watchers(release(15, 200)));
}

TEST(LayoutFacts, SayWhatCameWith314) {
  for (const auto& facts : all_layout_facts()) {
    const bool later = facts.minor >= 14;
    EXPECT_EQ(activates_once(release(facts.minor, 0)), later);
    EXPECT_EQ(checks_c_stack(release(facts.minor, 0)), later);
    EXPECT_EQ(facts.layout.publishes_tasks, later);
  }
}

TEST(EntryFrames, AreThoseOfAllVersions) {
  EXPECT_THAT(entry_frames(),
              UnorderedElementsAre(EntryFrame{.previous = 8, .owner = 70, .owner_value = 3},
                                   EntryFrame{.previous = 8, .owner = 74, .owner_value = 3}));
}

}  // namespace
}  // namespace pyinject::python
