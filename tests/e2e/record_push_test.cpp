// record --repeat --push: real recordings reach servers of the test's own.
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/profile_server.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class Push : public testing::Test {
 protected:
  void SetUp() override {
    const auto python = plain_interpreter(14);
    if (!python) {
      GTEST_SKIP() << "no CPython 3.14 (scripts/pythons)";
    }
    PythonOptions options;
    options.args = {"seldom"};
    options.child.env["OTEL_SERVICE_NAME"] = "shop";
    target_.emplace(*python, target_source("services.py"), options);
  }
  [[nodiscard]] std::vector<std::string> command(const std::string& repeat,
                                                 const std::vector<std::string>& more) const {
    std::vector<std::string> words{tool(),
                                   "record",
                                   "-v",
                                   "-p",
                                   std::to_string(target_->pid().value()),
                                   "-F",
                                   "199",
                                   "--no-bpf-event",
                                   "-o",
                                   directory_ / "perf.data",
                                   "--repeat",
                                   repeat,
                                   "--spool",
                                   spool()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  [[nodiscard]] base::Pid target() const { return target_->pid(); }
  [[nodiscard]] std::string spool() const { return directory_ / "spool"; }
  [[nodiscard]] const TempDir& directory() const { return directory_; }

 private:
  TempDir directory_;
  std::optional<PythonProcess> target_;
};

void end(ChildProcess& record) {
  record.signal(SIGTERM);
  const auto status = record.wait(base::Deadline::after(kPatience));
  EXPECT_EQ(status, (ExitStatus{.code = 128 + SIGTERM})) << record.err();
}

TEST_F(Push, DeliversOneRecording) {
  const auto once = [&](const std::string& destination) {
    std::vector<std::string> words{tool(),    "record", "-p",     std::to_string(target().value()),
                                   "-F",      "999",    "-o",     directory() / "perf.data",
                                   "--spool", spool(),  "--push", destination,
                                   "--",      "sleep",  "1"};
    return run(words);
  };
  const auto profiles = directory() / "profiles";
  const auto pushed = once("pprof-dir=" + profiles);
  EXPECT_EQ(pushed.status, ExitStatus{}) << pushed.err;
  EXPECT_THAT(pushed.err, HasSubstr("--push: 1 profile pushed, 0 retries, 0 dropped\n"));
  EXPECT_FALSE(std::filesystem::is_empty(profiles));
  EXPECT_TRUE(std::filesystem::exists(directory() / "perf.data"));
  ProfileServer server{{"403"}};
  const auto refused = once("pyroscope=" + server.url());
  EXPECT_EQ(refused.status, ExitStatus{.code = 125});
  EXPECT_THAT(refused.err, HasSubstr("--push: 0 profiles pushed, 0 retries, 1 dropped\n"));
}

TEST_F(Push, DeliversTheProgramsFunctions) {
  ProfileServer server{{"200"}};
  const auto stats = directory() / "stats.json";
  const auto profiles = directory() / "profiles";
  ChildProcess record{
      command("1s/1s", {"--push", "pyroscope=" + server.url(), "--push", "pprof-dir=" + profiles,
                        "--label", "region=eu", "--label", "team=a", "--stats", stats})};
  std::set<std::string> ids;
  for (int i = 0; i < 2; ++i) {
    const auto request = server.next();
    ids.insert(id_of(request));
    const auto& series = request.at("body").at("series").at(0);
    std::map<std::string, std::string> labels;
    for (const auto& label : series.at("labels")) {
      labels[label.at("name")] = label.at("value");
    }
    EXPECT_EQ(labels["service_name"], "shop");
    EXPECT_EQ(labels["region"], "eu");
    EXPECT_EQ(labels["team"], "a");
    EXPECT_EQ(labels["python_version"], "3.14");
    EXPECT_NE(labels["hostname"], "");
    const auto& profile = series.at("samples").at(0).at("profile");
    EXPECT_THAT(profile.at("functions").get<std::vector<std::string>>(), Contains("compute"));
    EXPECT_GT(profile.at("samples"), 0);
  }
  EXPECT_EQ(ids.size(), 2U);
  end(record);
  EXPECT_THAT(record.err(), AllOf(HasSubstr("--push: "), HasSubstr(" pushed, 0 retries, 0 dropped"),
                                  Not(HasSubstr("in the spool"))));
  EXPECT_TRUE(std::filesystem::is_empty(spool()));
  const auto counts = json::parse(contents_of(stats)).at("push");
  EXPECT_GE(counts.at("pushed"), 4);
  EXPECT_EQ(counts.at("spooled"), 0);
  EXPECT_GE(std::ranges::distance(std::filesystem::directory_iterator{profiles},
                                  std::filesystem::directory_iterator{}),
            2);
}

TEST_F(Push, OtlpGetsARequestOfThePublishedProto) {
  ProfileServer server{{"200"}};
  ChildProcess record{command("1s/1s", {"--push", "otlp=" + server.url(), "--label", "region=eu"})};
  const auto request = server.next();
  EXPECT_EQ(request.at("path"), "/v1development/profiles");
  const auto& resource = request.at("body").at("resource");
  EXPECT_EQ(resource.at("service.name"), "shop");
  EXPECT_EQ(resource.at("process.runtime.version"), "3.14");
  EXPECT_EQ(resource.at("region"), "eu");
  EXPECT_NE(resource.at("host.name"), "");
  const auto& profile = request.at("body").at("profiles").at(0);
  std::set<std::string> functions;
  for (const auto& sample : profile.at("samples")) {
    for (const auto& frame : sample.at("stack")) {
      functions.insert(frame.at("function"));
    }
  }
  EXPECT_THAT(functions, Contains("compute"));
  end(record);
  EXPECT_THAT(record.err(), HasSubstr("profiles are in alpha: this is v1development as of "
                                      "opentelemetry-proto 1.11.0"));
}

TEST_F(Push, NothingIsLostAndNothingComesTwiceAfterSigkill) {
  ProfileServer server{{"hang"}};
  std::string interrupted;
  {
    ChildProcess record{command("1s/1s", {"--push", "pyroscope=" + server.url()})};
    interrupted = id_of(server.next());
    await(record, "the next recording begins");  // at least one more recording is complete
    record.signal(SIGKILL);
    EXPECT_TRUE(record.wait(base::Deadline::after(kPatience)));
  }
  (void)server.answer_from_now("200");
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator{spool()}) {
    // Other files were being written when the tool was killed.
    if (const auto name = entry.path().stem().string(); entry.path().extension() == ".push") {
      left.insert(name.substr(name.find('-') + 1));
    }
  }
  EXPECT_THAT(left, Contains(interrupted));
  ChildProcess record{command("1s/1s", {"--push", "pyroscope=" + server.url()})};
  std::multiset<std::string> accepted;
  const auto all_accepted = [&] {
    return std::ranges::all_of(left, [&](const auto& id) { return accepted.contains(id); });
  };
  while (!all_accepted()) {
    const auto request = server.next();
    EXPECT_EQ(request.at("answer"), "200");
    accepted.insert(id_of(request));
  }
  await(record, "the events are enabled");  // before, the signal would just end it
  end(record);
  for (const auto& request : server.answer_from_now("400")) {
    accepted.insert(id_of(request));
  }
  for (const auto& id : left) {
    EXPECT_EQ(accepted.count(id), 1U) << id;
  }
  EXPECT_EQ((std::set<std::string>{accepted.begin(), accepted.end()}).size(), accepted.size());
  EXPECT_TRUE(std::filesystem::is_empty(spool()));
}

// Returns when all its threads are stopped.
void stop(const ChildProcess& record) {
  record.signal(SIGSTOP);
  const auto deadline = base::Deadline::after(kPatience);
  siginfo_t info{};
  while (info.si_pid == 0) {
    ASSERT_FALSE(deadline.expired());
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(record.pid().value()), &info, WSTOPPED | WNOHANG),
              0);
    ::sched_yield();
  }
}

// The only moment at which a profile is sent twice. A store can recognise it.
TEST_F(Push, AProfileComesOnceMoreWithTheSameIdAfterSigkillBehindTheAnswer) {
  ProfileServer server{{"held"}};
  json accepted;
  {
    ChildProcess record{command("1s/1s", {"--push", "otlp=" + server.url()})};
    accepted = server.next();
    stop(record);
    server.give_held_answer();
    record.signal(SIGKILL);
    EXPECT_TRUE(record.wait(base::Deadline::after(kPatience)));
  }
  (void)server.answer_from_now("200");
  ChildProcess record{command("1s/1s", {"--push", "otlp=" + server.url()})};
  const auto again = server.next();
  EXPECT_EQ(again.at("headers").at("idempotency-key"),
            accepted.at("headers").at("idempotency-key"));
  EXPECT_EQ(again.at("body"), accepted.at("body")) << "with the same profile_id";
  std::multiset<std::string> ids{again.at("headers").at("idempotency-key")};
  await(record, "the events are enabled");
  end(record);
  for (const auto& request : server.answer_from_now("400")) {
    ids.insert(request.at("headers").at("idempotency-key"));
  }
  EXPECT_EQ((std::set<std::string>{ids.begin(), ids.end()}).size(), ids.size()) << "no other twice";
  EXPECT_TRUE(std::filesystem::is_empty(spool()));
}

TEST_F(Push, LeavesTheRestInTheSpoolAtTheEnd) {
  ProfileServer server{{"503:3600"}};
  ChildProcess record{command("1s/1s", {"--push", "pyroscope=" + server.url()})};
  (void)server.next();
  await(record, "next attempt in 3600.0 s");
  end(record);
  EXPECT_THAT(record.err(), ContainsRegex("--push: [0-9]+ profiles? stays? in the spool"));
}

TEST_F(Push, KeepsSecretsOutOfItsOutputAndItsChildren) {
  ProfileServer server{{"403"}};
  const auto file = directory().file("credentials", "tenant=blue-tenant\n");
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const auto words =
      command("1s/1s", {"--push", "parca=" + server.url(), "--push-credentials", file});
  ChildProcess record{words,
                      {.env = {{"PYINJECT_PUSH_TOKEN", "hunter2"}},
                       .unset = {},
                       .uid = {},
                       .directory = {},
                       .root = {}}};
  const auto request = server.next();
  EXPECT_EQ(request.at("headers").at("authorization"), "Bearer hunter2");
  EXPECT_EQ(request.at("headers").at("x-scope-orgid"), "blue-tenant");
  await(record, "the server refused a profile, which is dropped: HTTP 403");
  // The tool and its guard.
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    const auto name = process.path().filename().string();
    if (contents_of(process.path() / "cmdline").find(server.url()) != std::string::npos) {
      EXPECT_THAT(contents_of(process.path() / "environ"), Not(HasSubstr("hunter2"))) << name;
    }
  }
  EXPECT_THAT(contents_of(fmt::format("/proc/{}/environ", record.pid().value())),
              HasSubstr("PATH="));
  end(record);
  EXPECT_THAT(record.err() + record.out(), Not(HasSubstr("hunter2")));
}

TEST_F(Push, UnsafePlacesAreRefusedBeforeARecording) {
  const auto file = directory().file("credentials", "token=hunter2\n");
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const auto refused =
      run(command("1s/1s", {"--push", "parca=http://127.0.0.1:1", "--push-credentials", file}));
  EXPECT_EQ(refused.status, ExitStatus{.code = 125});
  EXPECT_THAT(refused.err, AllOf(HasSubstr("is accessible to other users (mode 0644): chmod 600"),
                                 Not(HasSubstr("hunter2"))));
  std::filesystem::create_directory(directory() / "open");
  ASSERT_EQ(::chmod((directory() / "open").c_str(), 0777), 0);
  const auto open = run(command("1s/1s", {"--push", "pprof-dir=" + (directory() / "open")}));
  EXPECT_EQ(open.status, ExitStatus{.code = 125});
  EXPECT_THAT(open.err, HasSubstr("writable by other users"));
  EXPECT_FALSE(std::filesystem::exists(spool()));
}

}  // namespace
}  // namespace pyinject::test
