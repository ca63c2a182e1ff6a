#include "pyinject/inspect/dump_json.hpp"

#include "unit/inspect/made_snapshot.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pyinject::inspect {
namespace {

nlohmann::json json_of(const DumpedProcess& process) {
  return nlohmann::json::parse(to_json({process}, JsonForm::kIndented));
}

TEST(DumpJson, HasEveryFieldOfAThread) {
  const auto json =
      json_of({.pid = base::Pid{10}, .snapshot = test::made_snapshot(), .refusal = {}});
  EXPECT_EQ(json["version"], 1);
  const auto& process = json["processes"][0];
  EXPECT_EQ(process["pid"], 10);
  EXPECT_EQ(process["version"], "3.14.0");
  EXPECT_TRUE(process["reason"].is_null());
  EXPECT_TRUE(process["core"].is_null());
  const auto& main = process["threads"][0];
  EXPECT_EQ(main["tid"], 10);
  EXPECT_EQ(main["python_id"], 77);
  EXPECT_EQ(main["state"], "sleeping");
  EXPECT_EQ(main["gil"], "none");
  EXPECT_EQ(main["system_call"]["name"], "read");
  EXPECT_EQ(main["system_call"]["fd"], 3);
  EXPECT_EQ(main["system_call"]["file"], "/tmp/a\\x1b[31m");
  EXPECT_EQ(main["kernel"][1], "vfs_read");
  EXPECT_EQ(main["frames"][0]["function"], "wait");
  EXPECT_EQ(main["frames"][0]["line"], 7);
  EXPECT_TRUE(main["frames"][1]["line"].is_null());
  const auto& native = process["threads"][1];
  EXPECT_TRUE(native["python_id"].is_null());
  EXPECT_TRUE(native["gil"].is_null());
  EXPECT_TRUE(native["system_call"].is_null());
  const auto& worker = process["threads"][2];
  EXPECT_EQ(worker["gil"], "awaited");
  EXPECT_EQ(worker["gil_holder"], 10);
  EXPECT_EQ(worker["settled"], false);
  EXPECT_EQ(worker["complete"], false);
}

TEST(DumpJson, SaysWhichCoreAProcessIsOf) {
  auto snapshot = test::made_snapshot();
  snapshot.threads.front().processor = -1;
  snapshot.threads.front().activity = Activity::kUnknown;
  snapshot.core = CoreOrigin{.file = "/tmp/core",
                             .size = 100,
                             .expected_size = 300,
                             .signal = 0,
                             .signal_name = {},
                             .cause = {},
                             .thread = {}};
  const auto json = json_of({.pid = base::Pid{10}, .snapshot = snapshot, .refusal = {}});
  const auto& process = json["processes"][0];
  EXPECT_EQ(process["core"]["file"], "/tmp/core");
  EXPECT_EQ(process["core"]["size"], 100);
  EXPECT_EQ(process["core"]["expected_size"], 300);
  EXPECT_EQ(process["core"]["truncated"], true);
  EXPECT_TRUE(process["core"]["signal"].is_null());
  EXPECT_TRUE(process["core"]["signal_name"].is_null());
  EXPECT_TRUE(process["core"]["cause"].is_null());
  EXPECT_TRUE(process["core"]["tid"].is_null());
  EXPECT_TRUE(process["threads"][0]["cpu"].is_null());
  EXPECT_EQ(process["threads"][0]["state"], "unknown");
}

TEST(DumpJson, SaysWhyAProcessWasNotDumped) {
  const auto json =
      json_of({.pid = base::Pid{7},
               .snapshot = {},
               .refusal = python::Refusal{
                   .reason = python::Reason::kNotPython, .found = "no CPython", .remedy = {}}});
  const auto& process = json["processes"][0];
  EXPECT_EQ(process["pid"], 7);
  EXPECT_EQ(process["reason"], "not_python");
  EXPECT_EQ(process["found"], "no CPython");
  EXPECT_TRUE(process["threads"].empty());
}

TEST(DumpJson, IsOneLineIfRepeated) {
  const auto text = to_json(
      {{.pid = base::Pid{10}, .snapshot = test::made_snapshot(), .refusal = {}}}, JsonForm::kLine);
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace pyinject::inspect
