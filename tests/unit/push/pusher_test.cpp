// The pusher against servers of the test's own, without perf.
#include "export/deflate.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/patience.hpp"
#include "support/profile_server.hpp"
#include "support/temp_dir.hpp"
#include "unit/push/pusher_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace pyinject::push {
namespace {

using base::LogLevel;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::id_of;
using test::ProfileServer;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::map<std::string, std::string> labels_in(const json& list) {
  std::map<std::string, std::string> labels;
  for (const auto& label : list) {
    EXPECT_EQ(label.size(), 2U);
    labels[label.at("name")] = label.at("value");
  }
  return labels;
}

void expect_profile_of_web(const json& profile) {
  EXPECT_EQ(profile.at("types"), json::parse(R"(["samples/count", "cpu/nanoseconds"])"));
  EXPECT_EQ(profile.at("period_type"), json::parse(R"(["cpu/nanoseconds"])"));
  EXPECT_EQ(profile.at("samples"), 2);
  EXPECT_THAT(profile.at("functions").get<std::vector<std::string>>(),
              AllOf(Contains("handle"), Contains("memcpy"), Not(Contains("run"))));
  EXPECT_THAT(profile.at("sample_labels").get<std::vector<std::string>>(),
              Contains("thread=worker"));
  const auto age = std::chrono::system_clock::now().time_since_epoch() -
                   std::chrono::nanoseconds{profile.at("time").get<std::int64_t>()};
  EXPECT_GE(age, milliseconds{900});
  EXPECT_LE(age, std::chrono::minutes{2});
}

TEST_F(PusherTest, PyroscopeGetsEachSeriesWithItsLabels) {
  ProfileServer server{{"200"}};
  auto all = options({"pyroscope=" + server.url()});
  all.labels = {{.name = "region", .value = "eu"}, {.name = "hostname", .value = "mine"}};
  all.credentials.tenant = "shop";
  auto pusher = start(all);
  pusher.add("both");
  std::map<std::string, json> requests;
  for (int i = 0; i < 2; ++i) {
    const auto request = server.next();
    const auto labels = labels_in(request.at("body").at("series").at(0).at("labels"));
    requests[labels.at("service_name")] = request;
  }
  const auto& web = requests.at("web");
  EXPECT_EQ(web.at("path"), "/push.v1.PusherService/Push");
  const auto& headers = web.at("headers");
  EXPECT_EQ(headers.at("content-type"), "application/json");
  EXPECT_EQ(headers.at("connect-protocol-version"), "1");
  EXPECT_EQ(headers.at("x-scope-orgid"), "shop");
  EXPECT_FALSE(headers.contains("authorization"));
  EXPECT_EQ(web.at("body").size(), 1U);
  const auto& series = web.at("body").at("series");
  ASSERT_EQ(series.size(), 1U);
  EXPECT_EQ(labels_in(series[0].at("labels")),
            (std::map<std::string, std::string>{{"__name__", "process_cpu"},
                                                {"service_name", "web"},
                                                {"hostname", "mine"},
                                                {"region", "eu"},
                                                {"python_version", "3.13"}}));
  ASSERT_EQ(series[0].at("samples").size(), 1U);
  EXPECT_EQ(headers.at("idempotency-key"), id_of(web));
  EXPECT_NE(id_of(web), id_of(requests.at("job")));
  expect_profile_of_web(series[0].at("samples")[0].at("profile"));
  pusher.finish();
  EXPECT_EQ(pusher.counts().pushed, 2U);
  EXPECT_EQ(pusher.counts().spooled, 0U);
  EXPECT_TRUE(std::filesystem::is_empty(spool()));
}

TEST_F(PusherTest, ParcaGetsARawProfile) {
  ProfileServer server{{"200"}};
  auto all = options({"parca=" + server.url() + "/behind"});
  all.credentials.token = "hunter2";
  auto pusher = start(all);
  pusher.add("web");
  const auto request = server.next();
  EXPECT_EQ(request.at("path"), "/behind/profiles/writeraw");
  EXPECT_EQ(request.at("headers").at("content-type"), "application/json");
  EXPECT_EQ(request.at("headers").at("authorization"), "Bearer hunter2");
  EXPECT_EQ(request.at("body").at("normalized"), false);
  const auto& series = request.at("body").at("series");
  ASSERT_EQ(series.size(), 1U);
  EXPECT_EQ(labels_in(series[0].at("labels").at("labels")).at("__name__"), "process_cpu");
  EXPECT_EQ(labels_in(series[0].at("labels").at("labels")).at("service_name"), "web");
  expect_profile_of_web(series[0].at("samples").at(0).at("profile"));
  pusher.finish();
  EXPECT_EQ(pusher.counts().pushed, 1U);
}

TEST_F(PusherTest, DirectoryGetsFiles) {
  auto pusher = start(options({"pprof-dir=" + (directory() / "profiles")}));
  pusher.add("both");
  pusher.finish();
  EXPECT_EQ(pusher.counts().pushed, 2U);
  EXPECT_FALSE(std::filesystem::exists(spool()));
  std::set<std::string> services;
  for (const auto& entry : std::filesystem::directory_iterator{directory() / "profiles"}) {
    const std::string name = entry.path().filename();
    EXPECT_THAT(name, testing::MatchesRegex(R"([a-z]+\.20[0-9]{12}\.[0-9a-f]{8}\.pb\.gz)"));
    services.insert(name.substr(0, name.find('.')));
    EXPECT_THAT(test::contents_of(entry.path()), testing::StartsWith("\x1f\x8b"));
    struct stat facts {};
    ASSERT_EQ(::stat(entry.path().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  }
  EXPECT_EQ(services, (std::set<std::string>{"job", "web"}));
}

TEST_F(PusherTest, TemporaryFailuresAreRetriedInOrder) {
  ProfileServer server{{"close", "500", "503", "408", "429:1", "200"}};
  auto pusher = start(options({"pyroscope=" + server.url()}));
  pusher.add("web");
  const auto first = server.next();
  pusher.add("web");
  std::vector<json> attempts{first};
  for (int i = 0; i < 3; ++i) {
    attempts.push_back(server.next());
  }
  const auto before = std::chrono::steady_clock::now();
  attempts.push_back(server.next());
  attempts.push_back(server.next());
  EXPECT_GE(std::chrono::steady_clock::now() - before, milliseconds{1000}) << "Retry-After: 1";
  for (const auto& attempt : attempts) {
    EXPECT_EQ(id_of(attempt), id_of(first));
  }
  EXPECT_NE(id_of(server.next()), id_of(first));
  pusher.finish();
  EXPECT_EQ(pusher.counts().pushed, 2U);
  EXPECT_EQ(pusher.counts().retried, 5U);
  EXPECT_EQ(pusher.counts().dropped, 0U);
  EXPECT_THAT(text(LogLevel::kWarning), HasSubstr("in the spool, next attempt in 0.0 s"));
  EXPECT_THAT(text(LogLevel::kInfo), HasSubstr("the server takes profiles again"));
}

TEST_F(PusherTest, RefusedProfilesAreDroppedWithoutSecretsInTheMessage) {
  ProfileServer server{{"400", "moved", "401", "200"}};
  auto all = options({"pyroscope=" + server.url()});
  all.credentials.token = "hunter2";
  auto pusher = start(all);
  for (int i = 0; i < 4; ++i) {
    pusher.add("web");
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(server.next().at("path"), "/push.v1.PusherService/Push") << "no redirection";
  }
  pusher.finish();
  EXPECT_EQ(pusher.counts().dropped, 3U);
  EXPECT_EQ(pusher.counts().pushed, 1U);
  EXPECT_EQ(pusher.counts().spooled, 0U);
  const auto warnings = text(LogLevel::kWarning);
  EXPECT_THAT(warnings, AllOf(HasSubstr("refused a profile, which is dropped: HTTP 400"),
                              HasSubstr("HTTP 308"), HasSubstr("HTTP 401")));
  EXPECT_THAT(warnings + text(LogLevel::kInfo) + text(LogLevel::kDebug), Not(HasSubstr("hunter2")));
}

TEST_F(PusherTest, AnAnswerIsQuotedIfItHasNoSecret) {
  ProfileServer server{{"400"}};
  auto pusher = start(options({"pyroscope=" + server.url()}));
  pusher.add("web");
  pusher.finish();
  EXPECT_THAT(text(LogLevel::kWarning), HasSubstr("HTTP 400: what you sent: nothing"));
}

TEST_F(PusherTest, HangingServerIsLeftInTimeAndAnotherOneIsNotDelayed) {
  ProfileServer hanging{{"hang"}};
  ProfileServer other{{"200"}};
  auto all = options({"pyroscope=" + hanging.url(), "parca=" + other.url()});
  all.times.whole = milliseconds{300};
  all.patience = milliseconds{10};
  {
    auto pusher = start(all);
    pusher.add("web");
    EXPECT_EQ(hanging.next().at("answer"), "hang");
    EXPECT_EQ(hanging.next().at("answer"), "hang") << "after the time-out";
    EXPECT_EQ(other.next().at("answer"), "200");
    const auto deadline = base::Deadline::after(test::kPatience);
    while (pusher.counts().pushed == 0 && !deadline.expired()) {
      std::this_thread::yield();
    }
    pusher.finish();
    EXPECT_EQ(pusher.counts().pushed, 1U);
    EXPECT_EQ(pusher.counts().spooled, 1U);
  }
  EXPECT_THAT(text(LogLevel::kWarning), HasSubstr("timed out"));
}

// A port that is bound, but where no program listens.
class DeadPort {
 public:
  DeadPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  base::UniqueFd fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::string url_;
};

TEST_F(PusherTest, FillsTheSpoolToItsLimitIfNoServerAnswers) {
  const DeadPort port;
  auto all = options({"pyroscope=" + port.url()});
  all.spool_bytes = 4096;
  all.patience = milliseconds{10};
  constexpr std::uint64_t kProfiles = 20;
  auto pusher = start(all);
  for (std::uint64_t i = 0; i < kProfiles; ++i) {
    pusher.add("web");
  }
  pusher.finish();
  const auto counts = pusher.counts();
  EXPECT_EQ(counts.pushed, 0U);
  EXPECT_GE(counts.spooled, 2U);
  EXPECT_EQ(counts.spooled + counts.dropped, kProfiles);
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator{spool()}) {
    bytes += entry.file_size();
  }
  EXPECT_LE(bytes, all.spool_bytes);
  EXPECT_THAT(text(LogLevel::kWarning), AllOf(HasSubstr("is full"), HasSubstr("onnect")));
}

TEST_F(PusherTest, TheNextRunSendsWhatIsLeftOnceEach) {
  ProfileServer server{{"close"}};
  auto all = options({"pyroscope=" + server.url()});
  all.patience = milliseconds{1};
  constexpr int kProfiles = 5;
  {
    auto pusher = start(all);
    for (int i = 0; i < kProfiles; ++i) {
      pusher.add("web");
    }
    (void)server.next();
    pusher.finish();
    EXPECT_EQ(pusher.counts().spooled, 5U);
  }
  (void)server.answer_from_now("200");
  all.patience = std::chrono::minutes{1};
  auto pusher = start(all);
  const auto counts = pusher.counts();
  EXPECT_EQ(counts.spooled + counts.pushed, 5U);
  pusher.finish();
  EXPECT_EQ(pusher.counts().pushed, 5U);
  std::set<std::string> ids;
  for (const auto& request : server.answer_from_now("400")) {
    EXPECT_TRUE(ids.insert(id_of(request)).second) << "twice";
  }
  EXPECT_EQ(ids.size(), 5U);
  EXPECT_TRUE(std::filesystem::is_empty(spool()));
}

TEST_F(PusherTest, UnreadableRecordingIsCounted) {
  fake::Logger logger;
  ProfileServer server{{"200"}};
  Pusher pusher{options({"pyroscope=" + server.url()}),
                [](const std::string& file) -> std::optional<report::Profile> {
                  if (file == "damaged") {
                    throw std::runtime_error{"no recording"};
                  }
                  return file == "idle" ? std::optional{report::Profile{}} : std::nullopt;
                },
                made_labels, no_process, logger};
  pusher.add("damaged");
  pusher.add("unknown");
  pusher.add("idle");
  pusher.finish();
  EXPECT_EQ(pusher.counts().dropped, 2U);
  EXPECT_EQ(pusher.counts().pushed, 0U);
  EXPECT_THAT(logger.text(LogLevel::kError), HasSubstr("damaged: no recording"));
}

}  // namespace
}  // namespace pyinject::push
