#include "push/series.hpp"

#include "unit/push/made_profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyinject::push {
namespace {

using report::Profile;

Labels service(std::uint32_t /*pid*/, const std::string& name) {
  return {{.name = "service_name", .value = name}};
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
  const auto series = series_of(made_profile(), service);
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
  const auto series = series_of(made_profile(), service);
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
  const auto series = series_of(made_profile(), [](std::uint32_t pid, const std::string&) {
    return Labels{{.name = "pid", .value = std::to_string(pid)}};
  });
  EXPECT_EQ(series.size(), 3U);
  EXPECT_TRUE(series_of(Profile{}, service).empty());
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
  const auto known = static_cast<std::uint32_t>(profile.threads.size());
  constexpr std::uint32_t kChildren = 1000;
  for (std::uint32_t i = 0; i < kChildren; ++i) {
    auto child = thread;
    child.pid = 100'000 + i;
    child.process = "child " + std::to_string(i);
    profile.threads.push_back(child);
    auto one = sample;
    one.thread = known + i;
    profile.samples.push_back(one);
  }
  for (int i = 0; i < 9; ++i) {  // more than any child
    profile.samples.push_back(sample);
  }
  const auto series = series_of(profile, [](std::uint32_t /*pid*/, const std::string& name) {
    return Labels{{.name = "host", .value = "h"}, {.name = "service_name", .value = name}};
  });
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

}  // namespace
}  // namespace pyinject::push
