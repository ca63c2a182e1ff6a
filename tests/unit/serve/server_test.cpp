// The server over real sockets of this machine.
#include "serve/server.hpp"

#include "pyinject/base/deadline.hpp"
#include "serve/access.hpp"
#include "support/http_client.hpp"
#include "support/temp_dir.hpp"
#include "unit/serve/running_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace pyinject::serve {
namespace {

using namespace std::chrono_literals;
using test::get_request;
using test::http_get;
using test::HttpConnection;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

constexpr auto kProfile = "/debug/pprof/profile";

TEST(ServerTest, AnswersAsGoDoes) {
  HeldMaker maker;
  maker.release();
  const RunningServer server{maker};
  const auto reply = http_get(server.port(), std::string{kProfile} + "?seconds=2&pid=4711");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, std::string("PROFILE\0BYTES", 13));
  EXPECT_THAT(reply.headers, Contains(Pair("content-type", "application/octet-stream")));
  EXPECT_THAT(reply.headers,
              Contains(Pair("content-disposition", "attachment; filename=\"profile\"")));
  EXPECT_THAT(reply.headers, Contains(Pair("content-length", "13")));
  ASSERT_EQ(maker.requests().size(), 1U);
  EXPECT_EQ(maker.requests().front().length, 2s);
  EXPECT_EQ(maker.requests().front().pid, base::Pid{4711});
  EXPECT_EQ(http_get(server.port(), std::string{kProfile} + "?seconds=-2").status, 400);
  EXPECT_EQ(http_get(server.port(), "/healthz", "Host: evil.example\r\n").status, 403);
  EXPECT_EQ(http_get(server.port(), "/healthz", "").status, 400) << "HTTP/1.1 has a Host";
  HttpConnection old{server.port()};
  old.send("GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(old.reply().body, "ok\n");
  HttpConnection head{server.port()};
  head.send("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto headers = head.reply();
  EXPECT_EQ(headers.status, 200);
  EXPECT_EQ(headers.body, "");
}

// All at a time: as many profiles as permitted, the others are told to come back.
TEST(ServerTest, ServesFiftyClients) {
  constexpr std::size_t kClients = 50;
  constexpr std::size_t kRunning = 2;
  HeldMaker maker;
  const RunningServer server{maker};
  std::atomic<std::size_t> refused = 0;
  std::atomic<std::size_t> made = 0;
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      const auto reply = http_get(server.port(), kProfile);
      if (reply.status == 503 && reply.headers.contains("retry-after")) {
        if (++refused == kClients - kRunning) {
          maker.release();
        }
      }
      made += reply.status == 200 ? 1 : 0;
    });
  }
  for (auto& client : clients) {
    client.join();
  }
  EXPECT_EQ(refused, kClients - kRunning);
  EXPECT_EQ(made, kRunning);
  const auto metrics = http_get(server.port(), "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("perf_pyinject_profiles_total{event=\"cpu\"} 2\n"));
  EXPECT_THAT(metrics, HasSubstr("perf_pyinject_samples_total 14\n"));
  EXPECT_THAT(metrics, HasSubstr("perf_pyinject_lost_samples_total 4\n"));
  EXPECT_THAT(metrics, HasSubstr("perf_pyinject_targets 3\n"));
  EXPECT_THAT(metrics, HasSubstr("perf_pyinject_running_profiles 0\n"));
  EXPECT_THAT(metrics, HasSubstr("refused_requests_total{reason=\"too_many_profiles\"} 48\n"));
}

TEST(ServerTest, SlowClientsDoNotKeepOthersOut) {
  HeldMaker maker;
  const RunningServer server{maker, {.most_connections = 4, .receives = 3600s}};
  std::vector<HttpConnection> slow;
  for (int i = 0; i < 40; ++i) {
    slow.emplace_back(server.port()).send("GET /healthz HTTP/1.1\r\nHost: local");
  }
  EXPECT_EQ(http_get(server.port(), "/healthz").body, "ok\n");
  // The last ones are still there.
  slow.back().send("host\r\n\r\n");
  EXPECT_EQ(slow.back().reply().body, "ok\n");
  EXPECT_EQ(slow.front().receive(), "") << "the oldest one makes room";
}

// Each answered connection stays for a second, so that the client gets its answer.
TEST(ServerTest, ClientsThatDoNotCloseDoNotKeepOthersOut) {
  HeldMaker maker;
  const RunningServer server{maker, {.most_connections = 4}};
  std::vector<HttpConnection> answered;
  for (int i = 0; i < 40; ++i) {
    answered.emplace_back(server.port()).send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_EQ(answered.back().reply().body, "ok\n") << i;
  }
}

TEST(ServerTest, GivesUpASlowClient) {
  HeldMaker maker;
  const RunningServer server{maker, {.receives = 1s}};
  HttpConnection slow{server.port()};
  slow.send("GET /healthz HTTP/1.1\r\n");
  EXPECT_EQ(slow.receive(), "");
}

TEST(ServerTest, BoundsWhatItReads) {
  HeldMaker maker;
  const RunningServer server{maker};
  EXPECT_EQ(http_get(server.port(), "/" + std::string(9000, 'a')).status, 431);
  EXPECT_EQ(http_get(server.port(), "/healthz",
                     "Host: localhost\r\nX: " + std::string(9000, 'a') + "\r\n")
                .status,
            431);
  HttpConnection large{server.port()};
  large.send("POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(large.reply().status, 413);
  HttpConnection chunked{server.port()};
  chunked.send(
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde");
  EXPECT_EQ(chunked.reply().status, 413);
}

TEST(ServerTest, NeedsTheToken) {
  constexpr auto kToken = "0123456789abcdefghij";
  HeldMaker maker;
  maker.release();
  ServerOptions options;
  options.service.token = Token{kToken};
  const RunningServer server{maker, std::move(options)};
  const auto authorized = [](const std::string& token) {
    return "Host: a.example\r\nAuthorization: Bearer " + token + "\r\n";
  };
  for (const auto* const path : {kProfile, "/metrics", "/healthz", "/debug/pprof/", "/other"}) {
    const auto reply = http_get(server.port(), path);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_THAT(reply.headers, Contains(Pair("www-authenticate", "Bearer")));
    EXPECT_EQ(http_get(server.port(), path, authorized("0123456789abcdefghiX")).status, 401);
    EXPECT_EQ(http_get(server.port(), path, authorized("")).status, 401);
  }
  EXPECT_EQ(maker.requests().size(), 0U);
  EXPECT_EQ(http_get(server.port(), kProfile, authorized(kToken)).status, 200);
}

// Mutations of a request, the same in each run.
std::vector<std::string> malformed(std::size_t count) {
  const std::vector<std::string> seeds{
      get_request("/debug/pprof/profile?seconds=x"),
      get_request("/healthz"),
      get_request("http://[::1/%%%"),
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      std::string("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 11),
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"};
  std::mt19937 random{20261124};  // NOLINT(cert-msc51-cpp): reproducible on purpose
  std::vector<std::string> all;
  while (all.size() < count) {
    auto text = seeds[random() % seeds.size()];
    for (auto changes = random() % 6; changes > 0; --changes) {
      const auto at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.insert(at, random() % 32, static_cast<char>(random()));
          break;
        default:
          text.resize(at + 1);
      }
    }
    all.push_back(std::move(text));
  }
  return all;
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {}));
}

TEST(ServerTest, SurvivesTenThousandMalformedRequests) {
  const test::TempDir directory{"/tmp"};  // the path of a socket is short
  const auto path = directory / "a.sock";
  HeldMaker maker;
  maker.release();
  ServerOptions options;
  options.service.local_hosts_only = false;
  const RunningServer server{maker, std::move(options), {.path = path}};
  const auto metrics = [&] {
    HttpConnection connection{path};
    connection.send(get_request("/metrics"));
    return connection.reply();
  };
  ASSERT_EQ(metrics().status, 200);
  const auto before = open_descriptors();
  for (const auto& text : malformed(10'000)) {
    HttpConnection connection{path};
    connection.send(text);
    connection.end_of_input();
    (void)connection.receive();
  }
  const auto after = metrics();
  EXPECT_EQ(after.status, 200);
  EXPECT_THAT(after.body, HasSubstr("refused_requests_total{reason=\"malformed\"}"));
  EXPECT_THAT(after.body, HasSubstr("perf_pyinject_running_profiles 0\n"));
  // The server closes the last connections after their clients have seen the end.
  const auto deadline = base::Deadline::after(test::kPatience);
  while (open_descriptors() > before && !deadline.expired()) {
    std::this_thread::yield();
  }
  EXPECT_LE(open_descriptors(), before);
}

TEST(ServerTest, EndsTheProfileOfAClientThatHasGone) {
  HeldMaker maker;
  const RunningServer server{maker};
  HttpConnection client{server.port()};
  client.send(get_request(kProfile));
  ASSERT_TRUE(maker.wait_until_begun(1));
  client.close();
  EXPECT_TRUE(maker.wait_until_stopped(1));
  const auto deadline = base::Deadline::after(test::kPatience);
  std::string metrics;
  do {
    metrics = http_get(server.port(), "/metrics").body;
  } while (metrics.find("running_profiles 0\n") == std::string::npos && !deadline.expired());
  EXPECT_THAT(metrics, HasSubstr("perf_pyinject_failures_total{reason=\"client_gone\"} 1\n"));
}

TEST(ServerTest, EndsAllProfilesWhenItStops) {
  HeldMaker maker;
  RunningServer server{maker};
  HttpConnection one{server.port()};
  HttpConnection other{server.port()};
  HttpConnection idle{server.port()};
  one.send(get_request(kProfile));
  other.send(get_request(kProfile));
  ASSERT_TRUE(maker.wait_until_begun(2));
  server.stop();
  EXPECT_TRUE(maker.wait_until_stopped(2));
  for (auto* const client : {&one, &other}) {
    const auto reply = client->reply();
    EXPECT_EQ(reply.status, 503);
    EXPECT_THAT(reply.body, StartsWith("stopped (stopped)"));
  }
  EXPECT_EQ(idle.receive(), "");
}

}  // namespace
}  // namespace pyinject::serve
