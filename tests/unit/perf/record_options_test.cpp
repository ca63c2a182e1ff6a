#include "perf/record_options.hpp"

#include "perf/perf_command.hpp"
#include "perf/perf_process.hpp"
#include "pyinject/perf/perf_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace pyinject::perf {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Words = std::vector<std::string>;

ScannedWords scan(const Words& words) {
  const std::array tables = {record_options()};
  return scan_words(words, tables);
}

TEST(ScanWords, StopsAtTheFirstWordThatIsNoOption) {
  EXPECT_THAT(scan({"-F", "99", "-g", "sleep", "-p", "1"}).command,
              ElementsAre("sleep", "-p", "1"));
  EXPECT_THAT(scan({"--freq", "99", "-a", "--", "-x"}).command, ElementsAre("-x"));
  EXPECT_THAT(scan({"--freq=99", "true"}).command, ElementsAre("true"));
  EXPECT_THAT(scan({"-z", "true"}).command, ElementsAre("true")) << "-z has an optional value";
  EXPECT_THAT(scan({"-z9", "--switch-output", "true"}).command, ElementsAre("true"));
}

TEST(ScanWords, TakesClustersApart) {
  const auto scanned = scan({"-gvp", "1"});
  ASSERT_EQ(scanned.groups.size(), 1U);
  ASSERT_EQ(scanned.groups[0].size(), 3U);
  EXPECT_EQ(scanned.groups[0][2].option->long_name, "pid");
  EXPECT_EQ(scanned.groups[0][2].value, "1");
  EXPECT_THAT(scanned.groups[0][2].words, ElementsAre("-p", "1"));
  EXPECT_EQ(scan({"-gF99"}).groups[0][1].value, "99");
}

TEST(ScanWords, KnowsAbbreviationsAndNegations) {
  EXPECT_EQ(scan({"--outp", "x"}).groups[0][0].value, "x");
  EXPECT_TRUE(scan({"--no-call-graph", "true"}).groups[0][0].negated);
  EXPECT_FALSE(scan({"--no-buildid"}).groups[0][0].negated);
  EXPECT_THAT(scan({"--buildid", "true"}).problems, IsEmpty()) << "perf reports that itself";
  EXPECT_THAT(scan({"--switch", "true"}).problems,
              ElementsAre("option --switch is ambiguous: --switch-events, --switch-max-files, "
                          "--switch-output, --switch-output-event"));
  EXPECT_THAT(scan({"--freq"}).problems, ElementsAre("option --freq needs a value"));
  EXPECT_EQ(scan({"--of-the-future"}).groups[0][0].option, nullptr);
}

TEST(ChosenCallGraph, IsReadInEverySpelling) {
  using Kind = ChosenCallGraph::Kind;
  const auto kind = [](const Words& words) {
    const auto chosen = parse_options(words).call_graph;
    return chosen ? std::optional{chosen->kind} : std::nullopt;
  };
  for (const auto& words : {Words{"-g"}, Words{"-vg"}, Words{"--call-graph=fp"},
                            Words{"--call", "fp"}, Words{"-F", "99", "-g"}}) {
    EXPECT_EQ(kind(words), Kind::kFramePointers) << words.front();
  }
  EXPECT_EQ(kind({"--call-graph", "lbr"}), Kind::kOther);
  EXPECT_EQ(kind({"--no-call-graph"}), Kind::kNone);
  EXPECT_EQ(kind({"-g", "--call-graph", "dwarf"}), Kind::kDwarf) << "the last one wins";
  EXPECT_EQ(parse_options({"--call-graph", "dwarf"}).call_graph->dump_bytes, 8192U);
  EXPECT_EQ(parse_options({"--call-graph=dwarf,32768"}).call_graph->dump_bytes, 32768U);
  EXPECT_EQ(kind({"-F", "99", "-o", "-g"}), std::nullopt) << "-g is a file name there";
  EXPECT_EQ(kind({}), std::nullopt);
}

TEST(ChosenClock, IsTheLastOne) {
  EXPECT_EQ(parse_options({"-k", "mono", "--clockid=tai"}).clock, "tai");
  EXPECT_EQ(parse_options({"-kmono"}).clock, "mono");
  EXPECT_EQ(parse_options({"-F", "99"}).clock, std::nullopt);
}

TEST(ChosenTargets, AreThoseThatPerfWouldTake) {
  const auto launched = [](const std::vector<std::string>& words) {
    return chosen_targets(words).launched;
  };
  EXPECT_EQ(chosen_targets({"-g", "-p", "12,13", "sleep", "1"}).tasks, "12,13");
  EXPECT_EQ(chosen_targets({"-gt14"}).tasks, "14");
  EXPECT_EQ(chosen_targets({"-t", "14", "-p", "12", "-a"}).tasks, "12");
  EXPECT_FALSE(launched({"-p", "12", "--", "sleep", "1"}));
  EXPECT_TRUE(launched({"-g", "-G", "a", "python3", "-a"}));
  EXPECT_TRUE(launched({"--", "python3"}));
  EXPECT_FALSE(launched({"-a", "sleep", "1"}));
  EXPECT_FALSE(launched({"-C", "0", "sleep", "1"}));
  EXPECT_FALSE(launched({"-g"}));
  EXPECT_EQ(chosen_targets({"-a"}).tasks, "");
}

TEST(ParseOptions, KnowsWhatLimitsTheSamples) {
  EXPECT_TRUE(parse_options({"-C", "0"}).processors);
  EXPECT_TRUE(parse_options({"--per-thread"}).per_thread);
  EXPECT_FALSE(parse_options({"--no-per-thread"}).per_thread);
}

TEST(WritesDirectory, IsWithThreads) {
  EXPECT_TRUE(parse_options({"-g", "--threads"}).threads);
  EXPECT_TRUE(parse_options({"--threads=core", "-g"}).threads);
  EXPECT_FALSE(parse_options({"-g", "--no-threads"}).threads);
  EXPECT_FALSE(parse_options({"-t", "1"}).threads);
}

TEST(RecordArgv, KeepsTheUsersOptionsUnchangedAndInOrder) {
  EXPECT_THAT(record_argv({.perf = "/usr/bin/perf",
                           .control_fd = 5,
                           .ack_fd = 8,
                           .own = {"--call-graph", "fp"},
                           .options = PerfOptions{{"-F", "99", "-o", "x y"}},
                           .pids = {base::Pid{3}, base::Pid{14}}}),
              ElementsAre("/usr/bin/perf", "record", "-D", "-1", "--control", "fd:5,8",
                          "--call-graph", "fp", "-F", "99", "-o", "x y", "-p", "3,14"));
  EXPECT_THAT(record_argv({.perf = "perf", .control_fd = 3, .ack_fd = 4}),
              ElementsAre("perf", "record", "-D", "-1", "--control", "fd:3,4", "-a"));
}

TEST(ParseOptions, KnowsWherePerfWrites) {
  EXPECT_EQ(parse_options({}).output.path, "perf.data");
  EXPECT_EQ(parse_options({"-F", "99", "-o", "a", "--output=b"}).output.path, "b");
  EXPECT_FALSE(parse_options({}).output.pipe);
  EXPECT_TRUE(parse_options({}, true).output.pipe);
  EXPECT_FALSE(parse_options({"-ox"}, true).output.pipe);
  EXPECT_TRUE(parse_options({"-o", "-"}).output.pipe);
  EXPECT_TRUE(parse_options({"--switch-output=1s"}).output.several);
}

TEST(PerfOptions, LaterOnesWin) {
  PerfOptions options{{"-F", "99", "-o", "a"}};
  options.add({"-F", "49", "-o", "b"});
  EXPECT_THAT(options.words(), ElementsAre("-F", "99", "-o", "a", "-F", "49", "-o", "b"));
  EXPECT_EQ(options->frequency, 49U);
  EXPECT_EQ(options->output.path, "b");
}

TEST(SamplingEvents, AreAllButPerfsOwnSideBand) {
  using Event = SamplingEvent;
  EXPECT_THAT(sampling_events("cpu-clock:pppH\ndummy:HG\n"),
              ElementsAre(Event{"cpu-clock:pppH", std::nullopt}));
  EXPECT_THAT(sampling_events("task-clock:ppp\nsched:sched_switch\ndummy:u\n"),
              ElementsAre(Event{"task-clock:ppp", std::nullopt},
                          Event{"sched:sched_switch", std::nullopt}));
  EXPECT_THAT(sampling_events(""), IsEmpty());
}

// From perf 6.1. 6.12 and 7.2 append the type's name to its number, in two different ways.
TEST(SamplingEvents, HaveTheirTypes) {
  using Event = SamplingEvent;
  EXPECT_THAT(
      sampling_events("cpu-clock: type: 1, size: 128, { sample_period, sample_freq }: 4000\n"
                      "sched:sched_switch: type: 2 (tracepoint), size: 136, config: 0x174\n"
                      "mem:0x1000:w: type: 5 (PERF_TYPE_BREAKPOINT), size: 144, config: 0\n"
                      "dummy:HG: type: 1, size: 128, config: 0x9, { sample_period }: 1\n"),
      ElementsAre(Event{"cpu-clock", 1}, Event{"sched:sched_switch", 2}, Event{"mem:0x1000:w", 5}));
}

TEST(ParseWrittenFiles, UnderstandsEveryForm) {
  const auto plain = parse_written_files(
      "[ perf record: Woken up 4 times to write data ]\n"
      "[ perf record: Captured and wrote 1.234 MB my file.data (567 samples) ]\n");
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain[0].path, "my file.data");
  EXPECT_DOUBLE_EQ(plain[0].megabytes, 1.234);
  EXPECT_EQ(plain[0].samples, 567U);

  const auto about =
      parse_written_files("[ perf record: Captured and wrote 0.1 MB p (~12 samples) ]");
  ASSERT_EQ(about.size(), 1U);
  EXPECT_EQ(about[0].samples, 12U);
  EXPECT_TRUE(about[0].approximate);

  const auto compressed = parse_written_files(
      "[ perf record: Captured and wrote 0.001 MB t.data (3 samples), compressed (original 0.001 "
      "MB, ratio is 1.618) ]\n");
  ASSERT_EQ(compressed.size(), 1U);
  EXPECT_EQ(compressed[0].path, "t.data");
  EXPECT_EQ(compressed[0].samples, 3U);

  const auto without = parse_written_files(
      "[ perf record: Captured and wrote 0.004 MB tz.data, compressed (original 0.020 MB, ratio is "
      "5.127) ]\n");
  ASSERT_EQ(without.size(), 1U);
  EXPECT_EQ(without[0].path, "tz.data");
  EXPECT_EQ(without[0].samples, std::nullopt);

  const auto several = parse_written_files(
      "[ perf record: Dump sw.data.2026 ]\n[ perf record: Dump sw.data.2027 ]\n"
      "[ perf record: Captured and wrote 0.001 MB sw.data.<timestamp> ]\n");
  ASSERT_EQ(several.size(), 2U);
  EXPECT_EQ(several[1].path, "sw.data.2027");
}

TEST(WrittenFiles, MayHaveAnyName) {
  for (const std::string path : {"a\nb", "x ] y", "z (3 samples)", "p, compressed (q", "a"}) {
    const auto files = parse_written_files(
        "[ perf record: Woken up 1 times to write data ]\n"
        "[ perf record: Captured and wrote 0.123 MB " +
            path + " (12 samples) ]\n",
        {.path = path});
    ASSERT_EQ(files.size(), 1U) << path;
    EXPECT_EQ(files.front().path, path);
    EXPECT_EQ(files.front().samples, 12U) << path;
  }
}

TEST(ChoosesFrequency, InAnySpelling) {
  EXPECT_TRUE(parse_options({"-F", "99"}).rate);
  EXPECT_TRUE(parse_options({"-F99"}).rate);
  EXPECT_TRUE(parse_options({"--freq=99"}).rate);
  EXPECT_TRUE(parse_options({"-g", "-c", "1000"}).rate);
  EXPECT_FALSE(parse_options({"-g", "-e", "cpu-clock"}).rate);
  EXPECT_FALSE(parse_options({"-o", "-F"}).rate) << "the value of another option";
}

TEST(WritesDirectory, AsTheLastOneSays) {
  EXPECT_FALSE(parse_options({}).threads);
  EXPECT_TRUE(parse_options({"--threads"}).threads);
  EXPECT_TRUE(parse_options({"-F", "99", "--threads=core"}).threads);
  EXPECT_FALSE(parse_options({"--threads", "--no-threads"}).threads);
}

TEST(LeavesOutChildren, WithNoInherit) {
  EXPECT_FALSE(parse_options({"-I", "-g"}).leaves_out_children);
  EXPECT_TRUE(parse_options({"-gi"}).leaves_out_children);
  EXPECT_TRUE(parse_options({"--no-inherit"}).leaves_out_children);
}

TEST(Overwriting, IsRead) {
  EXPECT_TRUE(parse_options({"-g", "--overwrite"}).overwrite);
  EXPECT_TRUE(parse_options({"--overw"}).overwrite);
  EXPECT_FALSE(parse_options({"--no-overwrite"}).overwrite);
  EXPECT_FALSE(parse_options({"-o", "--overwrite"}).overwrite) << "the value of another option";
}

}  // namespace
}  // namespace pyinject::perf
