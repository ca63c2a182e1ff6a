#include "push/series.hpp"

#include "unit/push/made_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::push {
namespace {

using report::Profile;

Labels service(const RecordedProcess& process) {
  return {{.name = "service_name", .value = process.name}};
}
std::optional<LiveProcess> nobody(std::uint32_t /*pid*/) { return std::nullopt; }

// Adds COUNT processes that each have a name, and SAMPLES samples like the first one.
void add_processes(Profile& profile, std::uint32_t pid, std::uint32_t count, int samples = 1) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint32_t>(profile.threads.size());
    const auto name = "child " + std::to_string(pid + i);
    profile.threads.push_back({.pid = pid + i, .tid = pid + i, .name = name, .process = name});
    for (int k = 0; k < samples; ++k) {
      auto one = profile.samples.front();
      one.thread = number;
      profile.samples.push_back(one);
    }
  }
}

std::size_t kept_from(const std::vector<Series>& series, std::uint32_t pid, std::uint32_t count) {
  std::size_t sum = 0;
  for (const auto& each : series) {
    const auto own = each.sets > 1 ? 0 : each.profile.threads.at(0).pid;
    sum += own >= pid && own < pid + count ? 1 : 0;
  }
  return sum;
}

// Outermost first.
std::vector<std::string> functions_of(const Profile& profile, const report::Sample& sample) {
  std::vector<std::string> names;
  for (auto node = sample.stack; node != 0; node = profile.nodes.at(node).caller) {
    const auto& frame = profile.frames.at(profile.nodes.at(node).frame);
    names.insert(names.begin(), profile.functions.at(frame.function).name);
  }
  return names;
}

TEST(Series, AreOnePerSetOfLabels) {
  const auto series = series_of(made_profile(), service, nobody);
  ASSERT_EQ(series.size(), 2U);
  const auto& job = series[0];
  EXPECT_EQ(job.labels, (Labels{{.name = "service_name", .value = "job"},
                                {.name = "python_version", .value = "3.14"}}));
  ASSERT_EQ(job.profile.samples.size(), 1U);
  EXPECT_THAT(functions_of(job.profile, job.profile.samples[0]),
              testing::ElementsAre("eval", "run"));
  const auto& web = series[1];
  EXPECT_EQ(label_of(web.labels, "python_version"), "3.13");
  ASSERT_EQ(web.profile.samples.size(), 2U);
  EXPECT_THAT(functions_of(web.profile, web.profile.samples[0]),
              testing::ElementsAre("main", "handle", "memcpy"));
  EXPECT_EQ(web.profile.threads.at(web.profile.samples[1].thread).pid, 11U);
  EXPECT_EQ(web.profile.events.size(), 1U);
}

TEST(Series, HaveOnlyTheTablesOfTheirSamples) {
  const auto series = series_of(made_profile(), service, nobody);
  const auto& job = series.at(0).profile;
  ASSERT_EQ(job.objects.size(), 1U);
  EXPECT_EQ(job.functions.size(), 2U);
  EXPECT_EQ(job.frames.size(), 2U);
  EXPECT_EQ(job.nodes.size(), 3U);
  EXPECT_EQ(job.threads.size(), 1U);
  for (std::uint32_t i = 1; i < job.nodes.size(); ++i) {
    EXPECT_LT(job.nodes[i].caller, i);
  }
  for (const auto& function : job.functions) {
    EXPECT_EQ(job.objects.at(function.object).path, "/opt/lib/libpython3.14.so.1.0");
  }
}

TEST(Series, ProcessesWithDifferentLabelsAreApart) {
  const auto series = series_of(
      made_profile(),
      [](const RecordedProcess& process) {
        return Labels{{.name = "pid", .value = std::to_string(process.pid)}};
      },
      nobody);
  EXPECT_EQ(series.size(), 3U);
  EXPECT_TRUE(series_of(Profile{}, service, nobody).empty());
}

TEST(Series, VersionIsThatOfTheInterpretersFile) {
  EXPECT_EQ(python_version_in("/usr/bin/python3.13"), "3.13");
  EXPECT_EQ(python_version_in("/x/libpython3.9d.so.1.0"), "3.9");
  for (const auto* const path :
       {"python3", "python3.", "/python3.13/libc.so", "", "mypython3.1", "python3.99999999"}) {
    EXPECT_EQ(python_version_in(path), "") << path;
  }
}

// A process names each of its children.
TEST(Series, AreNotMoreThanAStoreCanBear) {
  auto profile = made_profile();
  const auto sample = profile.samples.front();
  const auto thread = profile.threads.front();
  constexpr std::uint32_t kChildren = 1000;
  add_processes(profile, 100'000, kChildren);
  for (int i = 0; i < 9; ++i) {  // more than any child
    profile.samples.push_back(sample);
  }
  const auto series = series_of(
      profile,
      [](const RecordedProcess& process) {
        return Labels{{.name = "host", .value = "h"},
                      {.name = "service_name", .value = process.name}};
      },
      nobody);
  ASSERT_EQ(series.size(), kMostSeries);
  std::size_t samples = 0;
  std::size_t sets = 0;
  bool innocent = false;
  for (const auto& each : series) {
    samples += each.profile.samples.size();
    sets += each.sets;
    innocent = innocent || label_of(each.labels, "service_name") == thread.process;
    if (each.sets > 1) {
      EXPECT_EQ(label_of(each.labels, "service_name"), "other");
      EXPECT_EQ(label_of(each.labels, "host"), "h") << "what all of them have";
    }
  }
  EXPECT_EQ(samples, profile.samples.size());
  EXPECT_GE(sets, kChildren);
  EXPECT_TRUE(innocent) << "the one with the most samples keeps its name";
}

constexpr std::uint32_t kHostile = 1001;  // uids
constexpr std::uint32_t kInnocent = 1002;

TEST(Series, PlacesAreSharedAmongTheUsers) {
  auto profile = made_profile();
  add_processes(profile, 1000, 20);         // of the innocent user, a sample each
  add_processes(profile, 100'000, 300, 3);  // hostile ones, which have more
  const auto series = series_of(profile, service, [](std::uint32_t pid) {
    return LiveProcess{.user = pid < 100'000 ? kInnocent : kHostile};
  });
  EXPECT_EQ(series.size(), kMostSeries);
  EXPECT_EQ(kept_from(series, 1000, 20), 20U);
  EXPECT_EQ(kept_from(series, 100'000, 300), kMostSeries - 1 - 20 - 2) << "what others leave free";
}

TEST(Series, ProcessesThatHaveExitedCountForTheUserOfTheirParent) {
  auto profile = made_profile();
  add_processes(profile, 1000, 40);
  add_processes(profile, 100'000, 300, 3);
  constexpr std::uint32_t kParent = 50;
  for (std::uint32_t i = 0; i < 300; ++i) {
    profile.forks.push_back(
        {.pid = 100'000 + i, .time = 1, .parent = i == 0 ? kParent : 99'999 + i});
  }
  const auto series =
      series_of(profile, service, [](std::uint32_t pid) -> std::optional<LiveProcess> {
        return pid >= 100'000
                   ? std::nullopt
                   : std::optional{LiveProcess{.user = pid == kParent ? kHostile : kInnocent}};
      });
  // Of three users: this one, the hostile one, and that of too long a row of parents.
  EXPECT_EQ(kept_from(series, 1000, 40) + 1, (kMostSeries - 1) / 3) << "and web";
}

TEST(Series, LabelsOfALaterProcessWithThePidAreNotTaken) {
  constexpr std::uint64_t kStart = 2'000'000'000;  // since boot
  auto profile = made_profile();
  profile.clock.id = CLOCK_BOOTTIME;
  profile.samples = {{.time = kStart - 500, .stack = 3},
                     {.time = kStart + 100'000'000, .stack = 3}};
  const auto series = series_of(
      profile,
      [](const RecordedProcess& process) {
        return Labels{{.name = "service_name", .value = process.lives ? "environment" : "web"}};
      },
      [](std::uint32_t /*pid*/) { return LiveProcess{.started = kStart}; });
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(label_of(series[0].labels, "service_name"), "environment");
  EXPECT_EQ(series[0].profile.samples.at(0).time, kStart + 100'000'000);
  EXPECT_EQ(label_of(series[1].labels, "service_name"), "web");
  EXPECT_EQ(series[1].profile.samples.at(0).time, kStart - 500);
}

TEST(Series, LabelsThatWereReadWhileThePidChangedHandsAreNotTaken) {
  int calls = 0;
  const auto series = series_of(
      made_profile(),
      [](const RecordedProcess& process) {
        return Labels{{.name = "service_name", .value = process.lives ? "environment" : "name"}};
      },
      [&](std::uint32_t /*pid*/) {
        return LiveProcess{.started = static_cast<std::uint64_t>(++calls)};
      });
  ASSERT_EQ(series.size(), 2U);  // by version
  for (const auto& each : series) {
    EXPECT_EQ(label_of(each.labels, "service_name"), "name");
  }
}

TEST(Owners, ReusedPidsAreThoseOfTheLastForkBefore) {
  auto profile = made_profile();
  profile.forks = {{.pid = 9, .time = 100, .parent = 1},
                   {.pid = 9, .time = 200, .parent = 2},
                   {.pid = 9, .time = 300, .parent = 3}};
  Owners owners{profile, [](std::uint32_t pid) {
                  return pid == 9 ? std::nullopt : std::optional{LiveProcess{.user = pid}};
                }};
  EXPECT_EQ(owners.user_of(9, 99), std::nullopt);
  EXPECT_EQ(owners.user_of(9, 100), 1U);
  EXPECT_EQ(owners.user_of(9, 250), 2U);
  EXPECT_EQ(owners.user_of(9, 400), 3U);
  EXPECT_EQ(owners.user_of(10, 400), 10U);
}

}  // namespace
}  // namespace pyinject::push
