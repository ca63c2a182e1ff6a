#include "cli/console.hpp"
#include "support/fake_python.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace pyinject::cli {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

session::RecordSummary summary() {
  session::RecordSummary result;
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
  EXPECT_EQ(format_bytes(312), "312 B");
  EXPECT_EQ(format_bytes(31'200), "31 kB");
  EXPECT_EQ(format_bytes(1'234'567), "1.2 MB");
  EXPECT_EQ(format_bytes(1'234'567'890), "1.2 GB");
  EXPECT_EQ(shell_word("perf.data"), "perf.data");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(SummaryLines, SayWhatToTypeNext) {
  EXPECT_THAT(summary_lines(summary(), "perf"),
              ElementsAre("recorded 5.0 s: 42 samples, 1.500 MB, my file",
                          "next: perf report -i 'my file'"));
  auto woven = summary();
  woven.woven.push_back({.path = "my file", .summary = {}});
  woven.woven[0].summary.samples = 41;
  woven.woven[0].summary.bytes_after = 31'200;
  woven.woven[0].summary.cut = 2;
  woven.woven[0].summary.broken = 1;
  woven.woven[0].summary.longest = 300;
  woven.woven[0].summary.unreadable = 4;
  EXPECT_THAT(summary_lines(woven, "perf"),
              ElementsAre("recorded 5.0 s: 41 samples, 31 kB, my file",
                          "3 stacks are not whole: 2 end with the copied part of the stack "
                          "([truncated: stack dump]), 1 are broken ([broken stack: FILE])",
                          "4 samples are damaged and left out",
                          "next: perf report --max-stack 300 -i 'my file'"));
  auto piped = summary();
  piped.output.pipe = true;
  EXPECT_THAT(summary_lines(piped, "perf"),
              ElementsAre("recorded 5.0 s of 1 target to standard output"));
}

TEST(SummaryLines, SayHowManyStacksLackWhat) {
  auto sampled = summary();
  sampled.sampler = session::SamplerStats{.matched = 8, .with_frames = 8, .unmatched = 1};
  EXPECT_THAT(summary_lines(sampled, "perf").at(1),
              "of 9 samples of Python processes 8 have Python functions, 1 have no record");
  sampled.sampler->python_only = 5;
  EXPECT_THAT(summary_lines(sampled, "perf").at(1),
              "of 9 samples of Python processes 8 have Python functions, 5 of them without "
              "the C functions between those, 1 have no record");
  sampled.sampler->python_only_cut = 2;
  sampled.sampler->no_state = 3;
  EXPECT_THAT(summary_lines(sampled, "perf").at(1),
              "of 9 samples of Python processes 8 have Python functions, 5 of them without "
              "the C functions between those (2 of them since the copied part of the stack was too "
              "short), 3 are of threads that are not Python's, 1 have no record");
}

TEST(ActivationLine, NamesMechanismAndTimes) {
  session::ActiveTarget active;
  active.target.id.pid = base::Pid{12};
  active.target.version = {.major = 3, .minor = 14, .micro = 0, .level = 0xf, .serial = 0};
  active.activation.mechanism = python::Mechanism::kStore;
  active.activation.stopped = std::chrono::microseconds{37};
  active.activation.until_active = std::chrono::microseconds{1250};
  EXPECT_EQ(activation_line(active),
            "pid 12: Python 3.14.0: trampoline on by store (threads stopped for 37 us, active "
            "after 1.2 ms)");
  active.activation.mechanism = python::Mechanism::kNone;
  EXPECT_EQ(activation_line(active),
            "pid 12: Python 3.14.0: trampoline on already, by a session that was killed or since a "
            "fork: taken "
            "over");
  active.target.owner.pid = base::Pid{::getpid()};
  EXPECT_EQ(activation_line(active),
            "pid 12: Python 3.14.0: trampoline on since it was forked by a target");
  active.activation.before = python::TrampolineState::kOnByItself;
  EXPECT_EQ(activation_line(active),
            "pid 12: Python 3.14.0: trampoline already on by itself, it stays on");
}

TEST(SamplerLine, SaysWhatIsNotZero) {
  EXPECT_EQ(sampler_line({.matched = 90, .with_frames = 90}),
            "of 90 samples of Python processes 90 have Python functions");
  EXPECT_EQ(
      sampler_line({.matched = 90, .with_frames = 90, .unmatched = 30, .not_joined = 28}),
      "of 120 samples of Python processes 90 have Python functions, 30 have no record (28 of them "
      "are of before the join or of after it)");
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
      "of 100 samples of Python processes 10 have Python functions, 84 are of threads that are "
      "not Python's, 4 of threads that run none, 3 have no record, 12 were matched by the "
      "nearest time, 5 cut at 512 frames, 6 could not be read to the end, 8 lost, 9 names "
      "lost; the thread's state was at hand in 11 and searched for in 2; the GIL was held in "
      "7 and waited for in 1");
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
            "\r\x1b[Kcompleting stacks 25 %, Ctrl-C leaves the file as perf wrote it\r\x1b[K");
}

}  // namespace
}  // namespace pyinject::cli
