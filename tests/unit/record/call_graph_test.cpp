#include "record/call_graph.hpp"

#include "record/resolve_command.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::record {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Kind = perf::ChosenCallGraph::Kind;

CallGraphFacts facts(std::uint8_t minor, bool frame_pointers, std::uint64_t stack = 0,
                     std::size_t calls = 0) {
  return {.pid = base::Pid{42},
          .version = {.major = 3, .minor = minor, .micro = 1, .level = 0xf, .serial = 0},
          .frame_pointers = frame_pointers,
          .stack_bytes = stack,
          .python_calls = calls};
}

CallGraphChoice judge(const CallGraphFacts& target, Kind kind, std::uint64_t dump = 0) {
  return choose_call_graph({target},
                           {.chosen = perf::ChosenCallGraph{.kind = kind, .dump_bytes = dump}});
}

TEST(WantedDump, IsUsePlusAReserveWithinLimits) {
  EXPECT_EQ(wanted_dump(facts(13, false)), 16384U);
  EXPECT_EQ(wanted_dump(facts(13, false, 20000)), 28672U);
  EXPECT_EQ(wanted_dump(facts(13, false, 20000, 20)), 40960U);
  EXPECT_EQ(wanted_dump(facts(13, false, 57000)), 65528U);
  EXPECT_EQ(wanted_dump(facts(13, false, ~std::uint64_t{0})), 65528U);
}

TEST(AffordableDump, IsWhatBuffersAndWritingAllow) {
  constexpr std::uint64_t kLarge = std::uint64_t{8} << 20U;
  EXPECT_EQ(affordable_dump({.buffer_bytes = kLarge}), 32768U);
  EXPECT_EQ(affordable_dump({.frequency = 999, .buffer_bytes = kLarge}), 65528U);
  EXPECT_EQ(affordable_dump({.frequency = 2000, .buffer_bytes = kLarge}), 65528U);
  EXPECT_EQ(affordable_dump({.frequency = 20'000, .buffer_bytes = kLarge}), 16384U);
  EXPECT_EQ(affordable_dump({}), 16384U) << "perf's default buffers";
  EXPECT_EQ(affordable_dump({.frequency = 99}), 65528U);
  EXPECT_EQ(affordable_dump({.frequency = 0}), 65528U);
}

TEST(ChooseCallGraph, CopiesAsMuchAsIsAffordable) {
  const CallGraphWishes wishes{
      .frequency_chosen = true, .frequency = 999, .buffer_bytes = std::uint64_t{8} << 20U};
  EXPECT_THAT(choose_call_graph({facts(13, false, 1000, 3)}, wishes).arguments,
              ElementsAre("--call-graph", "dwarf,65528", "-m", "8192K"));
}

TEST(ChooseCallGraph, FramePointersWhereAllHaveThem) {
  const auto choice = choose_call_graph({facts(15, true), facts(13, true)}, {});
  EXPECT_THAT(choice.arguments, ElementsAre("--call-graph", "fp"));
  EXPECT_EQ(choice.note, "");
}

TEST(ChooseCallGraph, FramePointersWhereNoneRunsYet) {
  const auto choice = choose_call_graph({}, {});
  EXPECT_THAT(choice.arguments, ElementsAre("--call-graph", "fp"));
  EXPECT_THAT(choice.note, HasSubstr("no Python runs yet"));
  const auto own = choose_call_graph(
      {}, {.chosen = perf::ChosenCallGraph{.kind = Kind::kDwarf, .dump_bytes = 8192}});
  EXPECT_THAT(own.arguments, IsEmpty());
  EXPECT_EQ(own.note, "");
}

TEST(ChooseForSampled, TheKernelsPartOfTargets) {
  auto choice = choose_for_sampled({});
  EXPECT_THAT(choice.arguments, ElementsAre("--call-graph", "fp", "--kernel-callchains"));
  EXPECT_EQ(choice.note, "");
  choice = choose_for_sampled({.others = true});  // whose C functions nobody else reads
  EXPECT_THAT(choice.arguments, ElementsAre("--call-graph", "fp"));
}

TEST(ChooseForSampled, WarnsThatPythonFunctionsNeedCallchains) {
  for (const auto kind : {Kind::kNone, Kind::kOther}) {
    const auto choice = choose_for_sampled({.chosen = perf::ChosenCallGraph{.kind = kind}});
    EXPECT_THAT(choice.arguments, IsEmpty());
    EXPECT_THAT(choice.note, HasSubstr("samples have no Python functions"));
    EXPECT_FALSE(choice.complete);
  }
  for (const auto kind : {Kind::kFramePointers, Kind::kDwarf}) {
    const auto choice = choose_for_sampled({.chosen = perf::ChosenCallGraph{.kind = kind}});
    EXPECT_THAT(choice.arguments, IsEmpty());
    EXPECT_EQ(choice.note, "");
  }
}

TEST(ChooseCallGraph, DwarfByTheDeepestStackElse) {
  const auto choice = choose_call_graph({facts(15, true), facts(13, false, 30000)}, {});
  EXPECT_THAT(choice.arguments, ElementsAre("--call-graph", "dwarf,38912"));
  EXPECT_TRUE(choice.complete);
  EXPECT_EQ(choice.note,
            "pid 42 (Python 3.13.1) was built without frame pointers: --call-graph dwarf,38912, up "
            "to 155 MB a second for each busy processor until it is post-processed (-F 99: 6 MB)");
  const auto quiet = choose_call_graph({facts(13, false, 30000)}, {.frequency_chosen = true});
  EXPECT_EQ(quiet.note,
            "pid 42 (Python 3.13.1) was built without frame pointers: --call-graph dwarf,38912");
}

TEST(ChooseCallGraph, DwarfWhereAnExtensionModuleBreaksTheChain) {
  auto target = facts(15, true);
  target.extension_without = "/usr/lib/python3/dist-packages/x/y.cpython-315.so";
  const auto choice = choose_call_graph({target}, {.frequency_chosen = true});
  EXPECT_EQ(choice.note,
            "y.cpython-315.so of pid 42 (Python 3.15.1) was built without frame pointers: "
            "--call-graph dwarf,16384");
  EXPECT_THAT(judge(target, Kind::kFramePointers).note, HasSubstr("its callers may be missing"));
}

TEST(ChooseCallGraph, LargerBuffersForCopiedStacksOnly) {
  const CallGraphWishes wishes{.buffer_bytes = std::uint64_t{8} << 20U};
  EXPECT_THAT(choose_call_graph({facts(13, false)}, wishes).arguments,
              ElementsAre("--call-graph", "dwarf,32768", "-m", "8192K"));
  EXPECT_THAT(choose_call_graph({facts(15, true)}, wishes).arguments,
              ElementsAre("--call-graph", "fp"));
}

TEST(ChooseCallGraph, SaysBeforeWhatWillBeCut) {
  const auto deep = choose_call_graph({facts(13, false, 100000, 200)}, {.frequency_chosen = true});
  EXPECT_FALSE(deep.complete);
  EXPECT_THAT(deep.note, HasSubstr("uses 100000 bytes of stack for 200 Python calls: the outermost "
                                   "functions, more than 65528 bytes up, will be"));
}

TEST(ChooseCallGraph, DwarfWhereCallchainsAreTooShort) {
  const auto deep = choose_call_graph({facts(15, true, 20000, 40)}, {.frequency_chosen = true});
  EXPECT_THAT(deep.arguments, ElementsAre("--call-graph", "dwarf,61440"));
  EXPECT_EQ(deep.note,
            "pid 42 (Python 3.15.1) is 40 Python calls deep, more than 127 entries of a callchain "
            "hold: --call-graph dwarf,61440");
  EXPECT_THAT(choose_call_graph({facts(15, true, 20000, 40)}, {.most_entries = 500}).arguments,
              ElementsAre("--call-graph", "fp"));
}

TEST(ChooseCallGraph, ObeysTheUserAndComputesWhatWillBeMissing) {
  for (const auto& good : {judge(facts(15, true), Kind::kFramePointers),
                           judge(facts(13, false, 20000), Kind::kDwarf, 32768),
                           judge(facts(13, false, 20000), Kind::kNone)}) {
    EXPECT_EQ(good.note, "");
    EXPECT_TRUE(good.complete);
    EXPECT_TRUE(good.arguments.empty());
  }
  const auto without = judge(facts(13, false), Kind::kFramePointers);
  EXPECT_FALSE(without.complete);
  EXPECT_THAT(without.note, HasSubstr("without frame pointers: with -g only the innermost"));
  EXPECT_THAT(judge(facts(15, true, 0, 40), Kind::kFramePointers).note,
              HasSubstr("about 150 entries of a callchain: the limit is 127"));
  EXPECT_THAT(judge(facts(13, false, 20000), Kind::kDwarf, 8192).note,
              HasSubstr("will be cut off; --call-graph dwarf,28672 reaches further"));
}

TEST(ChooseCallGraph, DependsOnTheLaunchedInterpreter) {
  const CallGraphWishes wishes{.frequency_chosen = true};
  EXPECT_THAT(choose_for_launched({"python3", true}, wishes).arguments,
              ElementsAre("--call-graph", "fp"));
  const auto without = choose_for_launched({"python3 (Python 3.13.5)", false}, wishes);
  EXPECT_THAT(without.arguments, ElementsAre("--call-graph", "dwarf,65528"));
  EXPECT_EQ(without.note,
            "python3 (Python 3.13.5) was built without frame pointers: --call-graph dwarf,65528");
  const auto unknown = choose_for_launched({"make", {}}, {});
  EXPECT_THAT(unknown.arguments, ElementsAre("--call-graph", "dwarf,32768"));
  EXPECT_THAT(unknown.note,
              HasSubstr("make: its Python is not known yet: --call-graph dwarf,32768, "
                        "up to 131 MB a second"));
  const CallGraphWishes chosen{
      .chosen = perf::ChosenCallGraph{.kind = Kind::kFramePointers, .dump_bytes = 0}};
  EXPECT_THAT(choose_for_launched({"python3", false}, chosen).note, HasSubstr("omit -g"));
  EXPECT_EQ(choose_for_launched({"python3", {}}, chosen).note, "");
  EXPECT_TRUE(choose_for_launched({"python3", true}, chosen).arguments.empty());
}

TEST(CheckCommand, AnswersAsEnvDoes) {
  const test::TempDir directory;
  const auto plain = directory.file("plain", "text");
  EXPECT_EQ(check_command({"sh"}, "/nonexistent:/bin").status, 0);
  EXPECT_EQ(check_command({"/bin/sh"}, "").status, 0);
  EXPECT_EQ(check_command({"no-such-command"}, "/bin").status, 127);
  EXPECT_THAT(check_command({"30"}, "/bin").problem, HasSubstr("-- sleep 30"));
  EXPECT_EQ(check_command({"sh"}, "/nonexistent:/bin").file, "/bin/sh");
  EXPECT_EQ(check_command({""}, "/bin").status, 127);
  EXPECT_EQ(check_command({"/no/such/file"}, "/bin").status, 127);
  EXPECT_EQ(check_command({plain}, "/bin").status, 126);
  EXPECT_EQ(check_command({"plain"}, directory.path().string() + ":/bin").status, 126);
  EXPECT_EQ(check_command({directory.path().string()}, "/bin").status, 126);
  EXPECT_EQ(check_command({plain}, "/bin").problem,
            "cannot run '" + plain + "': Permission denied");
}

}  // namespace
}  // namespace pyinject::record
