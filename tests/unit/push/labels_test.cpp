#include "push/labels.hpp"

#include "push/process_labels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include <unistd.h>

namespace pyinject::push {
namespace {

TEST(PushLabels, AreNamesWithPrintableValues) {
  EXPECT_EQ(parse_label("region=eu-1=b"), (Label{.name = "region", .value = "eu-1=b"}));
  EXPECT_EQ(parse_label("_x9=ü"), (Label{.name = "_x9", .value = "ü"}));
  for (const auto* const text : {"", "=v", "k=", "k", "9k=v", "a b=v", "a-b=v", "__name__=v",
                                 "k=a\nb", "k=\x1b[1m", "k=\xff", "\xc3\xbc=v"}) {
    EXPECT_EQ(parse_label(text), std::nullopt) << text;
  }
  EXPECT_TRUE(parse_label("k=" + std::string(kLongestValue, 'v')));
  EXPECT_FALSE(parse_label("k=" + std::string(kLongestValue + 1, 'v')));
  EXPECT_FALSE(parse_label(std::string(kLongestName + 1, 'k') + "=v"));
}

TEST(PushLabels, LaterOnesReplaceEarlierOnes) {
  Labels labels;
  set_label(labels, "a", "1");
  set_label(labels, "b", "2");
  set_label(labels, "a", "3");
  set_label(labels, "c", "");
  EXPECT_EQ(labels, (Labels{{.name = "a", .value = "3"}, {.name = "b", .value = "2"}}));
  EXPECT_EQ(label_of(labels, "c"), "");
}

TEST(PushLabels, AreBoundedAndPrintable) {
  EXPECT_EQ(label_value("a\nb"), "a\\x0ab");
  EXPECT_LE(label_value(std::string(5000, 'x')).size(), kLongestValue);
}

TEST(CgroupFacts, KnowUnitsContainersAndPods) {
  const std::string id(64, 'a');
  const std::string uid = "01234567-89ab-cdef-0123-456789abcdef";
  auto uid_of_systemd = uid;
  std::ranges::replace(uid_of_systemd, '-', '_');
  const auto facts = [](const std::string& path) {
    const auto all = facts_of_cgroup(path);
    return std::vector<std::string>{all.unit, all.container, all.pod};
  };
  using testing::ElementsAre;
  EXPECT_THAT(facts("system.slice/web.service"), ElementsAre("web", "", ""));
  EXPECT_THAT(facts("system.slice/web.service/worker"), ElementsAre("web", "", ""));
  EXPECT_THAT(facts("system.slice/system-shop.slice/shop@eu.service"),
              ElementsAre("shop@eu", "", ""));
  EXPECT_THAT(facts("user.slice/user-7.slice/user@7.service/app.slice/bot.service"),
              ElementsAre("bot", "", ""));
  EXPECT_THAT(facts("user.slice/user-7.slice/session-3.scope"), ElementsAre("", "", ""));
  EXPECT_THAT(facts("system.slice/docker-" + id + ".scope"), ElementsAre("", id, ""));
  EXPECT_THAT(facts("system.slice/docker.service/docker/" + id), ElementsAre("", id, ""));
  EXPECT_THAT(facts("machine.slice/libpod-" + id + ".scope/container"), ElementsAre("", id, ""));
  EXPECT_THAT(facts("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" +
                    uid_of_systemd + ".slice/cri-containerd-" + id + ".scope"),
              ElementsAre("", id, uid));
  EXPECT_THAT(facts("../../kubepods/besteffort/pod" + uid + "/" + id), ElementsAre("", id, uid));
  EXPECT_THAT(facts("system.slice/x" + id + ".scope"), ElementsAre("", "", ""));
  EXPECT_THAT(facts("kubepods.slice/podium"), ElementsAre("", "", ""));
  EXPECT_THAT(facts(""), ElementsAre("", "", ""));
  EXPECT_THAT(facts(".service"), ElementsAre("", "", ""));
}

TEST(ProcessLabels, AreNameAndHostForAnExitedProcess) {
  const auto labels =
      labels_of_process({.pid = 4'194'305, .name = "gunicorn: x"});  // above the largest
  EXPECT_EQ(label_of(labels, "service_name"), "gunicorn: x");
  EXPECT_NE(label_of(labels, "hostname"), "");
  EXPECT_EQ(labels.size(), 2U);
}

}  // namespace
}  // namespace pyinject::push
