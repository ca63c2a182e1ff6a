#include "bpf/placed_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pyinject::bpf {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr sampled_frame kEnd{.code = SAMPLER_STATE_END, .where = 0};
constexpr sampled_frame kIncomplete{.code = SAMPLER_STATE_END, .where = 1};

sampled_frame frame(std::uint32_t code) { return {.code = code, .where = 0}; }
sampled_frame place(std::uint32_t words) { return {.code = SAMPLER_PLACE, .where = words}; }

std::vector<std::uint32_t> ordered(const std::vector<sampled_frame>& words) {
  std::vector<std::uint32_t> codes;
  for (const auto& one : in_order_of_places(words)) {
    codes.push_back(one.code);
  }
  return codes;
}

TEST(PlacedGroups, AnInterpreterThatIsCalledComesFirst) {
  EXPECT_THAT(ordered({frame(1), frame(2), place(90), kEnd, frame(3), place(40), kEnd}),
              ElementsAre(3, 1, 2));
  EXPECT_THAT(ordered({frame(3), place(40), kEnd, frame(1), frame(2), place(90), kEnd}),
              ElementsAre(3, 1, 2));
}

TEST(PlacedGroups, InterpretersThatCallEachOtherTakeTurns) {
  EXPECT_THAT(ordered({frame(1), place(10), frame(2), place(30), kEnd, frame(3), place(20),
                       frame(4), place(40), kEnd}),
              ElementsAre(1, 3, 2, 4));
}

TEST(PlacedGroups, NothingIsOutsideOfAGap) {
  // The rest of the second interpreter may be anywhere outside of 20.
  EXPECT_THAT(ordered({frame(1), place(10), frame(2), place(30), kEnd, frame(3), place(20),
                       frame(4), kIncomplete}),
              ElementsAre(1, 3));
  EXPECT_THAT(ordered({frame(1), place(10), kEnd, kIncomplete}), IsEmpty());
  EXPECT_THAT(ordered({frame(1), place(10), kEnd, frame(3), kIncomplete}), IsEmpty());
  EXPECT_THAT(ordered({frame(1), frame(2), place(10), kIncomplete, frame(3), place(50), kEnd}),
              ElementsAre(1, 2));
}

TEST(PlacedGroups, FramesWithoutAnEndAreIgnored) {
  EXPECT_THAT(ordered({}), IsEmpty());
  EXPECT_THAT(ordered({frame(1)}), IsEmpty());
  EXPECT_THAT(ordered({frame(1), place(10)}), ElementsAre(1));
}

}  // namespace
}  // namespace pyinject::bpf
