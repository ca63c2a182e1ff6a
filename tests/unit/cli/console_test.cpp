#include "cli/console.hpp"

#include "cli/summary_lines.hpp"
#include "support/fake_python.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace pyinject::cli {
namespace {

using std::chrono::seconds;
using testing::_;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

record::RecordSummary summary() {
  record::RecordSummary result;
  result.elapsed = std::chrono::milliseconds{5040};
  result.targets = 1;
  result.output.path = "my file";
  perf::WrittenFile file;
  file.path = "my file";
  file.megabytes = 1.5;
  file.samples = 42;
  result.files = {file};
  return result;
}

TEST(Format, ReadsWell) {
  EXPECT_EQ(format_elapsed(seconds{12}), "12 s");
  EXPECT_EQ(format_elapsed(seconds{185}), "3 min 05 s");
  EXPECT_EQ(format_elapsed(seconds{7380}), "2 h 03 min");
  EXPECT_EQ(base::bytes_text(312), "312 B");
  EXPECT_EQ(base::bytes_text(31'200), "31 kB");
  EXPECT_EQ(base::bytes_text(1'234'567), "1.2 MB");
  EXPECT_EQ(base::bytes_text(1'234'567'890), "1.2 GB");
  EXPECT_EQ(shell_word("perf.data"), "perf.data");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(SummaryLines, SayWhatToTypeNext) {
  EXPECT_THAT(summary_lines(summary(), "perf"),
              ElementsAre("recorded 5.0 s: 42 samples, 1.500 MB, my file",
                          "next: perf report -i 'my file'"));
  auto without_addr2line = summary();
  without_addr2line.no_inline = true;
  EXPECT_THAT(summary_lines(without_addr2line, "perf"),
              Contains("next: perf report --no-inline -i 'my file'"));
  auto woven = summary();
  woven.woven.push_back({.path = "my file", .summary = {}});
  woven.woven[0].summary.samples = 41;
  woven.woven[0].summary.bytes_after = 31'200;
  woven.woven[0].summary.cut = 2;
  woven.woven[0].summary.broken = 1;
  woven.woven[0].summary.no_user_part = 5;
  woven.woven[0].summary.longest = 300;
  woven.woven[0].summary.unreadable = 4;
  woven.woven[0].summary.map_writes = 3;
  EXPECT_THAT(
      summary_lines(woven, "perf"),
      ElementsAre("recorded 5.0 s: 41 samples, 31 kB, my file",
                  "8 stacks are incomplete: 2 cut at the end of the copied stack "
                  "([truncated: stack dump]; --call-graph dwarf,65528 copies more), 1 "
                  "broken ([broken stack: FILE]), 5 without a deferred user part ([no deferred "
                  "callchain])",
                  "4 damaged samples skipped",
                  "3 samples of the tool's own perf map writes skipped",
                  "next: perf report --max-stack 300 -i 'my file', or perf-pyinject report 'my "
                  "file'"));
  woven.woven[0].summary.map_writes_hidden = true;
  EXPECT_THAT(summary_lines(woven, "perf"),
              Contains(HasSubstr("map writes may remain: --call-graph dwarf,16384")));
  woven.woven[0].summary.largest_copy = 65528;
  EXPECT_THAT(summary_lines(woven, "perf"),
              Contains(HasSubstr("([truncated: stack dump]; perf cannot copy more)")));
  auto piped = summary();
  piped.output.pipe = true;
  EXPECT_THAT(summary_lines(piped, "perf"),
              ElementsAre("recorded 5.0 s of 1 target to standard output"));
}

TEST(SummaryLines, CountThreadsWhoseEarlierFunctionsAreMissing) {
  auto lacking = summary();
  lacking.unknown_threads = 1;
  EXPECT_THAT(summary_lines(lacking, "perf"),
              Contains("1 thread: functions entered before the attach are missing: the stack "
                       "changed whenever it was read"));
  lacking.unknown_threads = 2;
  EXPECT_THAT(summary_lines(lacking, "perf"), Contains(StartsWith("2 threads: functions entered")));
}

TEST(SummaryLines, SayWhichShareOfTheSamplesIsLostAndWhatHelps) {
  auto slow = summary();
  slow.woven.push_back({.path = "my file", .summary = {}});
  auto& facts = slow.woven[0].summary;
  facts.samples = 38'572;
  facts.lost = 1234;
  facts.by_frequency = true;
  EXPECT_THAT(
      summary_lines(slow, "perf"),
      Contains(
          "perf lost 1,234 records, up to 3.1 % of the samples: a lower -F or a larger -m helps"));
  facts.by_frequency = false;
  facts.by_period = true;
  facts.lost = 1'234'567;
  EXPECT_THAT(summary_lines(slow, "perf"),
              Contains("perf lost 1,234,567 records, up to 97.0 % of the samples: a larger -c or a "
                       "larger -m helps"));
  facts.by_frequency = true;
  facts.lost = 1;
  EXPECT_THAT(
      summary_lines(slow, "perf"),
      Contains("perf lost 1 record, less than 0.1 % of the samples: a lower -F, a larger -c or a "
               "larger -m helps"));
}

TEST(SummaryLines, SayHowManyStacksLackWhat) {
  auto sampled = summary();
  sampled.sampler = record::SamplerStats{.matched = 8, .with_frames = 8, .unmatched = 1};
  EXPECT_THAT(summary_lines(sampled, "perf").at(1),
              "8 of 9 samples in Python processes have Python stacks, 1 unmatched");
  sampled.sampler->python_only = 5;
  EXPECT_THAT(summary_lines(sampled, "perf").at(1),
              "8 of 9 samples in Python processes have Python stacks, 5 without the C functions "
              "between the Python functions, 1 unmatched");
  sampled.sampler->python_only_cut = 2;
  sampled.sampler->no_state = 3;
  EXPECT_THAT(summary_lines(sampled, "perf").at(1),
              "8 of 9 samples in Python processes have Python stacks, 5 without the C functions "
              "between the Python functions (2 because the copied part of the stack was too "
              "short), 3 in threads that are not Python's, 1 unmatched");
}

TEST(SummaryLines, AreOneLineIfAllIsWell) {
  auto well = summary();
  well.woven.push_back({.path = "my file", .summary = {}});
  auto& facts = well.woven[0].summary;
  facts.samples = 4929;
  facts.bytes_after = 1'800'000;
  facts.stacks.counts.at(static_cast<std::size_t>(perfdata::StackKind::kComplete)) = 4929;
  EXPECT_THAT(summary_lines(well, "perf"),
              ElementsAre("recorded 5.0 s: all 4,929 samples have Python stacks; 1.8 MB, my file",
                          "next: perf report -i 'my file', or perf-pyinject report 'my file'"));
  facts.samples = 4930;  // one is not in a Python process
  EXPECT_THAT(summary_lines(well, "perf"),
              ElementsAre("recorded 5.0 s: 4930 samples, 1.8 MB, my file",
                          "all 4,929 samples in Python processes have Python stacks", _));
}

// A report of no samples would be an error.
TEST(SummaryLines, SayWhatKeepsMemoryAndNoNextStepIfNothingDoes) {
  auto kept = summary();
  kept.woven.push_back({.path = "my file", .summary = {}});
  auto& facts = kept.woven[0].summary;
  facts.samples = 2;
  facts.mapped_bytes = 5'700'000;
  facts.kept_bytes = 120'000;
  facts.unknown_breaks = 1;
  const auto lines = summary_lines(kept, "perf");
  EXPECT_THAT(lines, Contains("120 kB of 5.7 MB that system calls have mapped are still mapped "
                              "(period); the length of 1 call of brk is unknown"));
  EXPECT_THAT(lines.back(), StartsWith("next: perf report"));
  facts.samples = 0;
  facts.kept_bytes = 0;
  facts.unknown_breaks = 0;
  facts.young_bytes = 40'000'000;
  EXPECT_EQ(summary_lines(kept, "perf").back(),
            "0 B of 5.7 MB that system calls have mapped are still mapped (period); 40.0 MB more "
            "since the last tenth of the time: perhaps only in use");
}

TEST(ActivationLine, SaysWhatWasDoneToTheProcess) {
  targets::ActiveTarget active;
  active.target.id.pid = base::Pid{12};
  active.target.version = {.major = 3, .minor = 14, .micro = 0, .level = 0xf, .serial = 0};
  active.activation.mechanism = python::Mechanism::kStore;
  active.activation.stopped = std::chrono::microseconds{37};
  active.activation.until_active = std::chrono::microseconds{1250};
  EXPECT_EQ(activation_line(active), "pid 12: Python 3.14.0: trampoline on, stopped for 37 us");
  active.activation.mechanism = python::Mechanism::kNone;
  EXPECT_EQ(activation_line(active),
            "pid 12: Python 3.14.0: trampoline was on, left by a killed session or inherited by a "
            "fork; taken over");
  active.target.owner.pid = base::Pid{::getpid()};
  EXPECT_EQ(activation_line(active),
            "pid 12: Python 3.14.0: trampoline on since a target forked it");
  active.activation.before = python::TrampolineState::kOnByItself;
  EXPECT_EQ(activation_line(active),
            "pid 12: Python 3.14.0: trampoline was already on by itself; left on");
}

TEST(ConsoleTest, ListsReadOnlyTargetsAsSuch) {
  test::RecordingLogger logger;
  Console console{logger, false, "perf"};
  targets::ActiveTarget active;
  active.target.id.pid = base::Pid{12};
  active.target.version = {.major = 3, .minor = 14, .micro = 0, .level = 0xf, .serial = 0};
  console.observed(active);
  EXPECT_EQ(logger.text(base::LogLevel::kInfo),
            "pid 12: Python 3.14.0: attached read-only (BPF)\n");
}

TEST(SamplerLine, SaysWhatIsNotZero) {
  EXPECT_EQ(sampler_line({.matched = 90, .with_frames = 90}),
            "all 90 samples in Python processes have Python stacks");
  EXPECT_EQ(sampler_line({.matched = 1, .with_frames = 1}),
            "1 of 1 sample in Python processes has a Python stack");
  EXPECT_EQ(
      sampler_line({.matched = 90, .with_frames = 90, .unmatched = 30, .not_joined = 28}),
      "90 of 120 samples in Python processes have Python stacks, 30 unmatched (28 from before or "
      "after the join)");
  EXPECT_EQ(
      sampler_line({.matched = 97,
                    .with_frames = 10,
                    .unmatched = 3,
                    .state_found = 11,
                    .state_searched = 2,
                    .no_state = 84,
                    .no_frames = 4,
                    .truncated = 5,
                    .unreadable = 6,
                    .gil_held = 7,
                    .gil_waited_for = 1,
                    .lost = 8,
                    .lost_names = 9,
                    .by_clock = 12}),
      "10 of 100 samples in Python processes have Python stacks, 84 in threads that are not "
      "Python's, 4 in threads that ran no Python at that moment, 3 unmatched, 5 cut at 512 Python "
      "functions, 6 partly unreadable, 8 lost; 9 function names lost; GIL held in 7, waited for "
      "in 1");
}

TEST(ConsoleTest, DrawsNothingWithoutATerminal) {
  test::RecordingLogger logger;
  Console console{logger, false, "perf"};
  testing::internal::CaptureStderr();
  console.progress(seconds{3}, 100);
  console.stopped();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ConsoleTest, DrawsOneMovingLineOnATerminal) {
  test::RecordingLogger logger;
  Console console{logger, true, "perf"};
  testing::internal::CaptureStderr();
  console.progress(seconds{3}, 1'500'000);
  console.stopped();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "\r\x1b[Krecording 3 s, 1.5 MB\r\x1b[K");
  testing::internal::CaptureStderr();
  console.post_processing(0.25, 0);
  console.stopped();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "\r\x1b[Kunwinding stacks 25 %, Ctrl-C leaves the file as perf wrote it\r\x1b[K");
}

}  // namespace
}  // namespace pyinject::cli
