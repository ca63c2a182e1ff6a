// `why` of event loops that run tasks in different ways: what blocks them.
#include "e2e/why_of.hpp"
#include "support/bpf_engine.hpp"
#include "support/interpreters.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <tuple>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::MatchesRegex;

// Only the calls of epoll_wait() tell that the short sleeps of resize() are of one round.
constexpr auto kTask = R"(
import asyncio, sys, time
def resize():
    for _ in range(30):
        time.sleep(0.01)
async def handle(sleep):
    print("ready", flush=True)
    while True:
        resize()
        await sleep(0.05)
if sys.argv[1] == "trio":
    import trio
    async def main():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(handle, trio.sleep)
    trio.run(main)
elif sys.argv[1] == "uvloop":
    import uvloop
    uvloop.run(handle(asyncio.sleep))
else:
    asyncio.run(handle(asyncio.sleep))
)";

// Has ten connections to a server, which is this process, and waits.
constexpr auto kClient = R"(
import asyncio, socket, sys
server = socket.create_server(("127.0.0.1", 0))
connections = [socket.create_connection(server.getsockname()) for _ in range(10)]
async def wait(sleep):
    print("ready", flush=True)
    await sleep(100000)
if sys.argv[1] == "trio":
    import trio
    trio.run(wait, trio.sleep)
elif sys.argv[1] == "uvloop":
    import uvloop
    uvloop.run(wait(asyncio.sleep))
else:
    asyncio.run(wait(asyncio.sleep))
)";

class WhyLoops : public testing::TestWithParam<std::tuple<int, std::string>> {
 protected:
  void SetUp() override {
    const auto& [minor, loop] = GetParam();
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    python_ = find_interpreter({.minor = minor, .module = loop});
    if (!python_) {
      GTEST_SKIP() << "no CPython 3." << minor << " with " << loop << " (scripts/pythons)";
    }
  }
  [[nodiscard]] json why_of(const char* program) const {
    return test::why_of(*python_, program, std::get<1>(GetParam()));
  }

 private:
  std::optional<Interpreter> python_;
};

TEST_P(WhyLoops, NamesWhatBlocksThem) {
  const auto report = why_of(kTask);
  EXPECT_EQ(report.at("cause"), "event_loop");
  EXPECT_THAT(report.at("verdict").get<std::string>(),
              MatchesRegex("blocked event loop: callbacks keep thread .* from its event loop for "
                           ".* % of the time, up to .* ms, in resize <string>:5"));
}

TEST_P(WhyLoops, SaysToWhichServersIdleOnesAreConnected) {
  const auto report = why_of(kClient);
  EXPECT_EQ(report.at("cause"), "nothing");
  EXPECT_THAT(report.at("verdict").get<std::string>(),
              MatchesRegex("idle: .*; connected to 127.0.0.1:[0-9]+ \\(10\\)"));
}

INSTANTIATE_TEST_SUITE_P(Pythons, WhyLoops,
                         testing::Combine(testing::Values(13, 14),
                                          testing::Values("asyncio", "uvloop", "trio")),
                         [](const auto& each) {
                           return fmt::format("py3_{}_{}", std::get<0>(each.param),
                                              std::get<1>(each.param));
                         });

}  // namespace
}  // namespace pyinject::test
