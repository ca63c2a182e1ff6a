// Requests decoded by the numbers of opentelemetry-proto 1.11.0, written out here once more.
#include "export/otlp.hpp"

#include "pyinject/export/formats.hpp"
#include "support/decoded_message.hpp"
#include "unit/export/made_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace pyinject::exports {
namespace {

using report::Profile;
using test::DecodedMessage;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr std::uint64_t kWall = 1'700'000'000'000'000'000;

Profile timed() {
  auto profile = two_threads();
  profile.clock = {.id = CLOCK_MONOTONIC, .wall_offset = kWall};
  return profile;
}

class Otlp : public testing::Test {
 protected:
  using Attributes = std::map<std::string, std::string>;

  void decode(const Profile& profile) {
    const DecodedMessage request{text_of(profile, "otlp")};
    dictionary_ = request.message(2);
    resource_ = request.message(1);
    profiles_ = resource_.message(2).messages(2);
  }

  [[nodiscard]] std::string string(std::uint64_t index) const {
    return dictionary_.texts(5).at(index);
  }
  [[nodiscard]] DecodedMessage entry(protozero::pbf_tag_type table, std::uint64_t index) const {
    return dictionary_.messages(table).at(index);
  }
  [[nodiscard]] std::string type(const DecodedMessage& profile, protozero::pbf_tag_type tag) const {
    const auto value = profile.message(tag);
    return string(value.number(1)) + "/" + string(value.number(2));
  }
  [[nodiscard]] Attributes attributes(const DecodedMessage& owner,
                                      protozero::pbf_tag_type tag) const {
    Attributes all;
    for (const auto index : owner.numbers(tag)) {
      EXPECT_NE(index, 0U);
      const auto attribute = entry(6, index);
      const auto value = attribute.message(2);
      const auto fresh =
          all.try_emplace(string(attribute.number(1)),
                          value.has(1) ? value.text(1) : std::to_string(value.number(3)));
      EXPECT_TRUE(fresh.second);
    }
    return all;
  }
  [[nodiscard]] std::vector<DecodedMessage> locations(const DecodedMessage& sample) const {
    std::vector<DecodedMessage> all;
    for (const auto index : entry(7, sample.number(1)).numbers(1)) {
      all.push_back(entry(2, index));
    }
    return all;
  }
  [[nodiscard]] std::string function(const DecodedMessage& location) const {
    return string(entry(3, location.message(3).number(1)).number(1));
  }
  [[nodiscard]] std::vector<std::string> names(const DecodedMessage& sample) const {
    std::vector<std::string> all;
    for (const auto& location : locations(sample)) {
      all.push_back(function(location));
    }
    return all;
  }

  DecodedMessage dictionary_;
  DecodedMessage resource_;
  std::vector<DecodedMessage> profiles_;
};

TEST_F(Otlp, HasTheZeroValueFirstInEachTableAndNoEntryTwice) {
  decode(timed());
  for (const protozero::pbf_tag_type table : {1U, 2U, 3U, 6U, 7U}) {
    EXPECT_TRUE(entry(table, 0).empty()) << table;
  }
  EXPECT_EQ(entry(4, 0).text(1), std::string(16, '\0'));
  EXPECT_EQ(entry(4, 0).text(2), std::string(8, '\0'));
  EXPECT_EQ(string(0), "");
  for (protozero::pbf_tag_type table = 1; table <= 7; ++table) {
    const auto entries = dictionary_.texts(table);
    EXPECT_EQ(std::set(entries.begin(), entries.end()).size(), entries.size()) << table;
  }
}

TEST_F(Otlp, HasAProfileForEachEvent) {
  decode(timed());
  ASSERT_EQ(profiles_.size(), 2U);
  EXPECT_EQ(type(profiles_[0], 1), "samples/count");
  EXPECT_EQ(type(profiles_[0], 5), "cpu/nanoseconds");
  EXPECT_EQ(profiles_[0].number(6), 5'000'000U);
  EXPECT_EQ(profiles_[0].number(3), kWall + 1'000'000);
  EXPECT_EQ(profiles_[0].number(4), 3'000'001U);
  EXPECT_EQ(type(profiles_[1], 1), "off_cpu/nanoseconds");
  EXPECT_FALSE(profiles_[1].has(5));
  EXPECT_EQ(resource_.message(2).message(1).text(1), "perf-pyinject");
}

TEST_F(Otlp, CountsSamplesOfOnePeriodByTheirTimes) {
  decode(timed());
  const auto samples = profiles_.at(0).messages(2);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_THAT(samples[0].packed_fixed64(5), ElementsAre(kWall + 1'000'000, kWall + 2'000'000));
  EXPECT_FALSE(samples[0].has(4));
  const auto waits = profiles_.at(1).messages(2);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_THAT(waits[0].packed_fixed64(5), ElementsAre(kWall + 3'000'000));
  EXPECT_THAT(waits[0].numbers(4), ElementsAre(700U));
}

TEST_F(Otlp, HasStacksInnermostFirstWithoutMarks) {
  decode(timed());
  const auto cpu = profiles_.at(0).messages(2);
  const auto waits = profiles_.at(1).messages(2);
  EXPECT_THAT(names(cpu[0]), ElementsAre("memcpy", "Cart.add;<lambda>", "outer"));
  EXPECT_THAT(names(waits[0]), ElementsAre("do_idle", "[python3.15]", "outer"));
  const auto stack = locations(cpu[0]);
  EXPECT_EQ(stack[1].message(3).number(2), 7U);
  EXPECT_EQ(string(entry(3, stack[1].message(3).number(1)).number(3)), "/srv/b 12");
  EXPECT_EQ(stack[1].number(1), 0U);
  EXPECT_EQ(locations(waits[0])[1].number(2), 0x40U);
}

TEST_F(Otlp, HasAttributesOfSamplesFramesAndMappings) {
  decode(timed());
  const auto cpu = profiles_.at(0).messages(2);
  EXPECT_THAT(attributes(cpu[0], 2),
              UnorderedElementsAre(Pair("process.pid", "10"), Pair("thread.id", "10"),
                                   Pair("process.executable.name", "web"),
                                   Pair("thread.name", "web"), Pair("pyinject.gil", "held")));
  EXPECT_THAT(attributes(cpu[1], 2),
              IsSupersetOf({Pair("thread.name", "worker 3"), Pair("pyinject.task", "fetch 1")}));
  const auto kind = [&](const DecodedMessage& location) {
    return attributes(location, 4)["profile.frame.type"];
  };
  EXPECT_EQ(kind(locations(cpu[0])[0]), "native");
  EXPECT_EQ(kind(locations(cpu[0])[1]), "cpython");
  EXPECT_EQ(kind(locations(profiles_.at(1).messages(2)[0])[0]), "kernel");
  const auto mapping = entry(1, locations(cpu[0])[0].number(1));
  EXPECT_EQ(string(mapping.number(4)), "/usr/lib/libc.so.6");
  EXPECT_THAT(attributes(mapping, 5), ElementsAre(Pair("process.executable.build_id.gnu", "ab12")));
}

TEST_F(Otlp, SumsPeriodsThatDiffer) {
  auto profile = timed();
  profile.events[0] = {.name = "cycles"};
  profile.samples[1].period = 7;
  decode(profile);
  EXPECT_EQ(type(profiles_.at(0), 1), "cycles/count");
  EXPECT_EQ(profiles_.at(0).number(6), 10'000'007U / 3);
  const auto samples = profiles_.at(0).messages(2);
  EXPECT_THAT(samples.at(0).numbers(4), ElementsAre(5'000'007U));
  EXPECT_THAT(samples.at(1).numbers(4), ElementsAre(5'000'000U));
  EXPECT_FALSE(samples.at(0).has(5));
}

TEST_F(Otlp, HasNoTimesIfTheRecordingHasNoTimeOfDay) {
  decode(two_threads());
  EXPECT_FALSE(profiles_.at(0).has(3));
  const auto sample = profiles_.at(0).messages(2).at(0);
  EXPECT_FALSE(sample.has(5));
  EXPECT_THAT(sample.numbers(4), ElementsAre(2U));
  EXPECT_THAT(profiles_.at(1).messages(2).at(0).numbers(4), ElementsAre(700U));
}

TEST_F(Otlp, NamesTheServiceAfterTheOnlyProcess) {
  const auto resource_of = [](const std::string& request) {
    std::map<std::string, std::string> all;
    for (const auto& attribute : DecodedMessage{request}.message(1).message(1).messages(1)) {
      all[attribute.text(1)] = attribute.message(2).text(1);
    }
    return all;
  };
  auto profile = two_threads();
  const std::vector<ResourceAttribute> host{{.key = "host.name", .value = "h"}};
  const std::vector<ResourceAttribute> shop{{.key = "service.name", .value = "shop"}};
  EXPECT_THAT(resource_of(otlp_request(profile, host)),
              ElementsAre(Pair("host.name", "h"), Pair("service.name", "web")));
  EXPECT_THAT(resource_of(otlp_request(profile, shop)), ElementsAre(Pair("service.name", "shop")));
  profile.threads[1].process = "other";
  EXPECT_THAT(resource_of(otlp_request(profile, {})), IsEmpty());
}

TEST_F(Otlp, HasAnIdForEachProfileIfOneIsGiven) {
  decode(timed());
  EXPECT_FALSE(profiles_.at(0).has(7));
  ProfileId id{};
  id.fill(0x41);
  const DecodedMessage request{otlp_request(timed(), {}, id)};
  const auto profiles = request.message(1).message(2).messages(2);
  EXPECT_EQ(profiles.at(0).text(7), std::string(16, 'A'));
  EXPECT_EQ(profiles.at(1).text(7), std::string(15, 'A') + "@");
}

TEST_F(Otlp, ReplacesInvalidUtf8) {
  auto profile = two_threads();
  profile.functions[0].name = "\xFF";
  decode(profile);
  EXPECT_THAT(dictionary_.texts(5), testing::Contains("\\xff"));
}

}  // namespace
}  // namespace pyinject::exports
