#include "pyinject/session/call_graph.hpp"
#include "pyinject/session/workload.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

CallGraphFacts facts(std::uint8_t minor, bool frame_pointers, std::uint64_t stack = 0) {
  return {.pid = base::Pid{42},
          .version = {.major = 3, .minor = minor, .micro = 1, .level = 0xf, .serial = 0},
          .frame_pointers = frame_pointers,
          .stack_bytes = stack};
}

TEST(DumpSize, IsUsePlusAReserveWithinLimits) {
  EXPECT_EQ(dump_size(0), 16384U);
  EXPECT_EQ(dump_size(20000), 28672U);
  EXPECT_EQ(dump_size(57000), 65528U);
  EXPECT_EQ(dump_size(1U << 30U), 65528U);
  EXPECT_EQ(dump_size(~std::uint64_t{0}), 65528U);
}

TEST(ChooseCallGraph, FramePointersWhereAllHaveThem) {
  const auto choice = choose_call_graph({facts(15, true), facts(13, true)}, true);
  EXPECT_THAT(choice.arguments, ElementsAre("--call-graph", "fp"));
  EXPECT_EQ(choice.note, "");
}

TEST(ChooseCallGraph, DwarfByTheDeepestStackElse) {
  const auto choice = choose_call_graph({facts(15, true), facts(13, false, 30000)}, true);
  EXPECT_THAT(choice.arguments, ElementsAre("--call-graph", "dwarf,38912"));
  EXPECT_EQ(choice.note,
            "pid 42 (Python 3.13.1) was built without frame pointers: only the innermost Python "
            "function of each sample will be named, not its callers");
  EXPECT_THAT(choose_call_graph({facts(13, false, 100000)}, true).note,
              HasSubstr("stacks of up to 100000 bytes are cut at 65528"));
}

TEST(ChooseCallGraph, WithoutLibunwindDwarfNamesNothing) {
  EXPECT_THAT(choose_call_graph({facts(14, false)}, false).arguments,
              ElementsAre("--call-graph", "fp"));
  const auto old = choose_call_graph({facts(13, false)}, false);
  EXPECT_THAT(old.arguments, ElementsAre("--call-graph", "dwarf,16384"));
  EXPECT_THAT(old.note, HasSubstr("will name no Python function"));
}

TEST(CheckCommand, AnswersAsEnvDoes) {
  const test::TempDir folder;
  const auto plain = folder.file("plain", "text");
  EXPECT_EQ(check_command({"sh"}, "/nonexistent:/bin").status, 0);
  EXPECT_EQ(check_command({"/bin/sh"}, "").status, 0);
  EXPECT_EQ(check_command({"no-such-command"}, "/bin").status, 127);
  EXPECT_EQ(check_command({""}, "/bin").status, 127);
  EXPECT_EQ(check_command({"/no/such/file"}, "/bin").status, 127);
  EXPECT_EQ(check_command({plain}, "/bin").status, 126);
  EXPECT_EQ(check_command({"plain"}, folder.path().string() + ":/bin").status, 126);
  EXPECT_EQ(check_command({folder.path().string()}, "/bin").status, 126);
  EXPECT_EQ(check_command({plain}, "/bin").problem,
            "cannot run '" + plain + "': Permission denied");
}

}  // namespace
}  // namespace pyinject::session
