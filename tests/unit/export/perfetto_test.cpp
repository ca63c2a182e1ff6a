// Traces decoded by the numbers of Perfetto's protos, written out here once more.
#include "pyinject/export/formats.hpp"
#include "support/decoded_message.hpp"
#include "unit/export/made_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace pyinject::exports {
namespace {

using report::Profile;
using test::DecodedMessage;
using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kClearsState = 1;

class Perfetto : public testing::Test {
 protected:
  // The interned data of a sequence, by field and iid.
  using Interned = std::map<std::pair<protozero::pbf_tag_type, std::uint64_t>, DecodedMessage>;

  void decode(const Profile& profile) {
    packets_ = DecodedMessage{text_of(profile, "perfetto")}.messages(1);
    for (const auto& packet : packets_) {
      auto& interned = interned_[packet.number(10)];
      if (packet.number(13) == kClearsState) {
        interned.clear();
      }
      for (const protozero::pbf_tag_type table : {5U, 6U, 7U, 16U, 17U, 18U, 19U}) {
        for (const auto& entry : packet.message(12).messages(table)) {
          EXPECT_TRUE(interned.try_emplace({table, entry.number(1)}, entry).second);
        }
      }
    }
  }
  [[nodiscard]] std::vector<DecodedMessage> with(protozero::pbf_tag_type field) const {
    std::vector<DecodedMessage> all;
    for (const auto& packet : packets_) {
      if (packet.has(field)) {
        all.push_back(packet);
      }
    }
    return all;
  }
  [[nodiscard]] std::vector<DecodedMessage> frames(std::uint64_t sequence,
                                                   std::uint64_t stack) const {
    std::vector<DecodedMessage> all;
    for (const auto frame : interned_.at(sequence).at({7, stack}).numbers(2)) {
      all.push_back(interned_.at(sequence).at({6, frame}));
    }
    return all;
  }
  [[nodiscard]] std::string text(std::uint64_t sequence, protozero::pbf_tag_type table,
                                 std::uint64_t id) const {
    return interned_.at(sequence).at({table, id}).text(2);
  }
  [[nodiscard]] std::vector<std::string> names(std::uint64_t sequence, std::uint64_t stack) const {
    std::vector<std::string> all;
    for (const auto& frame : frames(sequence, stack)) {
      all.push_back(text(sequence, 5, frame.number(2)));
    }
    return all;
  }

  std::vector<DecodedMessage> packets_;
  std::map<std::uint64_t, Interned> interned_;
};

TEST_F(Perfetto, HasTheClocksOfTheRecording) {
  auto profile = two_threads();
  profile.clock = {.id = CLOCK_MONOTONIC, .wall_offset = 1'000};
  decode(profile);
  const auto snapshot = packets_.at(0).message(6);
  EXPECT_EQ(snapshot.number(2), 3U);
  std::map<std::uint64_t, std::uint64_t> clocks;
  for (const auto& clock : snapshot.messages(1)) {
    clocks[clock.number(1)] = clock.number(2);
  }
  EXPECT_THAT(clocks, ElementsAre(Pair(1U, 1'001'000U), Pair(3U, 1'000'000U)));
  for (const auto& packet : with(59)) {
    EXPECT_EQ(packet.number(13), kClearsState);
    EXPECT_EQ(packet.message(59).number(58), 3U);
  }
}

TEST_F(Perfetto, HasASampleOfEachSampleThatIsNoWait) {
  decode(two_threads());
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> times;
  for (const auto& packet : with(66)) {
    const auto sample = packet.message(66);
    EXPECT_EQ(sample.number(2), 10U);
    times.emplace_back(packet.number(8), sample.number(3), sample.number(6));
  }
  // Time, thread, sum of the periods.
  EXPECT_THAT(times, ElementsAre(std::tuple{1'000'000U, 10U, 5'000'000U},
                                 std::tuple{2'000'000U, 10U, 10'000'000U},
                                 std::tuple{4'000'000U, 11U, 15'000'000U}));
  const auto timebase = with(59).at(1).message(59).message(12).message(1);
  EXPECT_EQ(timebase.number(4), 1U);
  EXPECT_EQ(timebase.text(10), "cpu-clock");
}

TEST_F(Perfetto, HasStacksOutermostFirstWithoutMarks) {
  decode(two_threads());
  const auto packet = with(66).at(0);
  const auto sequence = packet.number(10);
  const auto stack = packet.message(66).number(4);
  EXPECT_THAT(names(sequence, stack), ElementsAre("outer", "Cart.add;<lambda>", "memcpy"));
  const auto inner = frames(sequence, stack).at(1);
  EXPECT_EQ(inner.number(6), 7U);
  EXPECT_EQ(inner.number(7), 3U);  // KIND_INTERPRETED
  EXPECT_EQ(text(sequence, 18, inner.number(5)), "/srv/b 12");
  const auto native = frames(sequence, stack).at(2);
  EXPECT_EQ(native.number(7), 1U);  // KIND_NATIVE
  const auto mapping = interned_.at(sequence).at({19, native.number(3)});
  EXPECT_EQ(text(sequence, 17, mapping.number(7)), "/usr/lib/libc.so.6");
  EXPECT_EQ(text(sequence, 16, mapping.number(2)), "\xAB\x12");
}

TEST_F(Perfetto, HasTracksOfProcessesAndThreads) {
  decode(two_threads());
  std::map<std::uint64_t, std::string> threads;
  std::string process;
  for (const auto& packet : with(60)) {
    const auto track = packet.message(60);
    if (track.has(4)) {
      EXPECT_EQ(track.message(4).number(1), 10U);
      threads[track.message(4).number(2)] = track.message(4).text(5);
    } else if (track.has(3)) {
      process = track.message(3).text(6);
    }
  }
  EXPECT_EQ(process, "web");
  EXPECT_THAT(threads, ElementsAre(Pair(10U, "web"), Pair(11U, "worker 3")));
}

TEST_F(Perfetto, HasSlicesOfStatesAndWaits) {
  decode(two_threads());
  std::map<std::uint64_t, std::string> tracks;
  std::map<std::uint64_t, std::uint64_t> threads;
  for (const auto& packet : with(60)) {
    const auto track = packet.message(60);
    if (track.has(4)) {
      threads[track.number(1)] = track.message(4).number(2);
    } else if (track.has(5)) {
      tracks[track.number(1)] = std::to_string(threads.at(track.number(5))) + " " + track.text(2);
    }
  }
  using Slice = std::tuple<std::string, std::string, std::uint64_t, std::uint64_t>;
  std::vector<Slice> slices;
  std::map<std::uint64_t, Slice> open;
  for (const auto& packet : with(11)) {
    const auto event = packet.message(11);
    const auto track = event.number(11);
    if (event.number(9) == 1) {
      EXPECT_FALSE(open.contains(track));
      open[track] = {tracks.at(track), event.text(23), packet.number(8), 0};
    } else {
      std::get<3>(open.at(track)) = packet.number(8);
      slices.push_back(open.at(track));
      open.erase(track);
    }
    if (event.text(23) == "Wait") {
      EXPECT_THAT(names(1, event.number(56)), ElementsAre("outer", "[python3.15]", "do_idle"));
    }
  }
  EXPECT_TRUE(open.empty());
  // States last for an interval after their last sample.
  EXPECT_THAT(slices,
              UnorderedElementsAre(Slice{"10 GIL", "GIL held", 1'000'000, 7'000'000},
                                   Slice{"11 Waits", "Wait", 3'000'000, 3'000'700},
                                   Slice{"11 Tasks", "Task fetch 1", 4'000'000, 9'000'000}));
}

TEST_F(Perfetto, HasASliceOfEachCollection) {
  decode(collections());
  std::uint64_t track = 0;
  for (const auto& packet : with(60)) {
    track = packet.message(60).text(2) == "GC" ? packet.message(60).number(1) : track;
  }
  std::vector<std::uint64_t> times;
  std::vector<std::string> seen;
  for (const auto& packet : with(11)) {
    const auto event = packet.message(11);
    if (event.number(11) == track) {
      times.push_back(packet.number(8) / 1'000'000);
      if (event.number(9) == 1) {
        EXPECT_EQ(event.text(23), "GC");
        EXPECT_EQ(event.message(4).text(10), "seen in");
        seen.push_back(event.message(4).text(6));
      }
    }
  }
  EXPECT_THAT(times, ElementsAre(5, 20, 25, 27, 30, 72, 1000, 1005, 2000, 2000));
  EXPECT_THAT(seen, ElementsAre("3 samples", "1 sample", "2 samples", "1 sample", "1 sample"));
}

TEST_F(Perfetto, KeepsTasksOfOneThreadApart) {
  auto profile = two_threads();
  profile.functions.push_back({.kind = report::Kind::kMark, .name = "[task fetch 2]"});
  profile.frames.push_back({.function = 7});
  profile.nodes.push_back({.caller = 0, .frame = 7});  // 10
  const auto sample = profile.samples.back();
  for (const std::uint32_t stack : {10U, 9U}) {
    auto next = sample;
    next.stack = stack;
    next.time = profile.samples.back().time + 1'000'000;
    profile.samples.push_back(next);
  }
  decode(profile);
  std::vector<std::pair<std::string, std::uint64_t>> tasks;
  for (const auto& packet : with(11)) {
    if (packet.message(11).text(23).starts_with("Task")) {
      tasks.emplace_back(packet.message(11).text(23), packet.number(8));
    }
  }
  EXPECT_THAT(tasks, ElementsAre(Pair("Task fetch 1", 4'000'000U), Pair("Task fetch 2", 5'000'000U),
                                 Pair("Task fetch 1", 6'000'000U)));
}

}  // namespace
}  // namespace pyinject::exports
