// `why` of event loops that run tasks in different ways: what blocks them.
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"

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

class WhyLoops : public testing::TestWithParam<std::tuple<int, std::string>> {};

TEST_P(WhyLoops, NamesWhatBlocksThem) {
  const auto& [minor, loop] = GetParam();
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto python = find_interpreter({.minor = minor, .module = loop});
  if (!python) {
    GTEST_SKIP() << "no CPython 3." << minor << " with " << loop << " (scripts/pythons)";
  }
  const PythonProcess target{*python, kTask, {.interpreter_args = {}, .args = {loop}, .child = {}}};
  const auto shown =
      run({tool(), "why", "-d", "2", "--json", "-p", std::to_string(target.pid().value())});
  ASSERT_EQ(shown.status, ExitStatus{}) << shown.err;
  const auto report = json::parse(shown.out);
  EXPECT_EQ(report.at("cause"), "event_loop");
  EXPECT_THAT(report.at("verdict").get<std::string>(),
              MatchesRegex("blocked event loop: callbacks keep thread .* from its event loop for "
                           ".* % of the time, up to .* ms, in resize <string>:5"));
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
