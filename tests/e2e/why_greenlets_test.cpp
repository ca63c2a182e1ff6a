// `why` of gevent: what blocks the hub, and where greenlets wait.
#include "e2e/why_of.hpp"
#include "support/bpf_engine.hpp"
#include "support/interpreters.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// A server whose handlers block the thread, its client, and greenlets that wait.
constexpr auto kServer = R"(
import sys, threading, time, gevent, gevent.server, gevent.socket
def wait_forever():
    gevent.sleep(100000)
def block():
    time.sleep(0.3)
def handle(connection, address):
    block()
    connection.sendall(b"x")
    connection.close()
def client(port):
    while True:
        connection = gevent.socket.create_connection(("127.0.0.1", port))
        while connection.recv(1):
            pass
        connection.close()
        gevent.sleep(0.05)
def main():
    for i in range(30):
        gevent.spawn(wait_forever)
    if sys.argv[1] == "blocked":
        server = gevent.server.StreamServer(("127.0.0.1", 0), handle)
        server.start()
        gevent.spawn(client, server.server_port)
    if sys.argv[1] == "pool":
        pool = gevent.get_hub().threadpool
        gevent.joinall([pool.spawn(time.sleep, 0.1) for i in range(5)])
    gevent.spawn(print, "ready", flush=True)
    gevent.sleep(100000)
thread = threading.Thread(target=main)
thread.start()
thread.join()
)";

class WhyGreenlets : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    python_ = find_interpreter({.minor = GetParam(), .module = "gevent"});
    if (!python_) {
      GTEST_SKIP() << "no CPython 3." << GetParam() << " with gevent (scripts/pythons)";
    }
  }
  [[nodiscard]] json why_of(const std::string& kind) const {
    return test::why_of(*python_, kServer, kind);
  }

 private:
  std::optional<Interpreter> python_;
};

TEST_P(WhyGreenlets, NamesWhatBlocksTheHub) {
  const auto report = why_of("blocked");
  EXPECT_EQ(report.at("cause"), "event_loop");
  const std::string verdict = report.at("verdict");
  EXPECT_THAT(verdict, StartsWith("blocked event loop: greenlets keep thread "));
  EXPECT_THAT(verdict, HasSubstr(" from gevent's hub for "));
  EXPECT_THAT(verdict, EndsWith(", in block <string>:6"));
}

TEST_P(WhyGreenlets, ListsThoseThatAreSuspended) {
  const auto report = why_of("idle");
  EXPECT_EQ(report.at("cause"), "nothing");
  const std::string verdict = report.at("verdict");
  EXPECT_THAT(verdict, HasSubstr("; 30 of 31 greenlets wait in wait_forever <string>:4"));
  EXPECT_EQ(report.at("greenlets"), 31);
  EXPECT_EQ(report.at("all_greenlets"), true);
  const auto first = report.at("greenlet_stacks").at(0);
  EXPECT_EQ(first.at("count"), 30);
  EXPECT_EQ(first.at("certain"), true);
  EXPECT_EQ(
      first.at("frames").back(),
      json({{"kind", "python"}, {"function", "wait_forever"}, {"file", "<string>"}, {"line", 4}}));
}

TEST_P(WhyGreenlets, TakeThreadsOfThePoolThatWaitForWorkForIdle) {
  const auto report = why_of("pool");
  EXPECT_EQ(report.at("cause"), "nothing") << report.at("verdict");
  EXPECT_THAT(report.dump(), HasSubstr("acquire_with_timeout"));
}

INSTANTIATE_TEST_SUITE_P(Pythons, WhyGreenlets, testing::Values(13, 14),
                         [](const testing::TestParamInfo<int>& each) {
                           return fmt::format("py3_{}", each.param);
                         });

}  // namespace
}  // namespace pyinject::test
