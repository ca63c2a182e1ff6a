// Real perf recording a sleeping process.
#include "perf/perf_process.hpp"

#include "base/file.hpp"
#include "pyinject/perf/output_file.hpp"
#include "support/find_perf.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace pyinject::perf {
namespace {

base::Deadline soon() { return base::Deadline::after(test::kPatience); }

class PerfProcessTest : public testing::Test {
 protected:
  [[nodiscard]] RecordCommand command(std::vector<std::string> options) const {
    return {.perf = "perf", .options = PerfOptions{std::move(options)}, .pids = {target_.pid()}};
  }

  // With SCRIPT in place of perf.
  [[nodiscard]] RecordCommand stand_in(const char* script) const {
    auto words = command({"-o", directory_ / "x.data"});
    words.perf = directory_.file("perf", script);
    std::filesystem::permissions(words.perf, std::filesystem::perms::owner_all);
    return words;
  }

  test::TempDir directory_;
  base::Child target_{{.argv = {"sleep", "600"}, .death_signal = SIGKILL}};
};

TEST_F(PerfProcessTest, ObeysTheControlChannel) {
  PerfProcess perf{command({"-o", directory_ / "x.data"})};
  for (const auto* word : {"ping", "enable", "disable", "stop"}) {
    EXPECT_EQ(perf.request(word, soon()), Answer::kAcknowledged) << word;
  }
  EXPECT_EQ(perf.wait(soon()), (base::ExitStatus{false, 0}));
  const auto files = parse_written_files(perf.stderr_text());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].path, directory_ / "x.data");
}

// Then enable_side_events() is not needed.
TEST_F(PerfProcessTest, SideEventsOfTheWholeSystemAreEnabledFromTheStart) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root";
  }
  for (const auto* const name : {"perf", "perf6.12", "perf7"}) {
    const auto path = test::find_perf(name);
    for (const bool all : {true, false}) {
      if (!path) {
        continue;
      }
      RecordCommand words{.perf = *path,
                          .options = PerfOptions{{"-o", directory_ / "x.data", "-e", "cpu-clock"}}};
      if (!all) {
        words.pids = {target_.pid()};
      }
      PerfProcess perf{words};
      ASSERT_EQ(perf.request("evlist -v", soon()), Answer::kAcknowledged);
      perf.read_stderr();
      const auto& text = perf.stderr_text();
      const auto begin = text.find("dummy:");
      ASSERT_NE(begin, std::string::npos) << text;
      const auto line = text.substr(begin, text.find('\n', begin) - begin);
      EXPECT_EQ(line.find("disabled: 1") == std::string::npos, all) << name << ": " << line;
    }
  }
}

TEST_F(PerfProcessTest, TellsThatPerfHasEnded) {
  PerfProcess perf{command({"-o", "/nonexistent/x.data"})};
  EXPECT_EQ(perf.request("ping", soon()), Answer::kEnded);
  const auto status = perf.wait(soon());
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->success());
  EXPECT_THAT(perf.stderr_text(), testing::HasSubstr("/nonexistent/x.data"));
}

// A perf that is exiting: it has written its message and closed the pipe of its commands.
constexpr auto kCloses = R"(#!/usr/bin/env python3
import os, signal, sys
commands = int(next(word for word in sys.argv if word.startswith('fd:'))[3:].split(',')[0])
os.write(2, b'Error: No such process\n')
os.close(commands)
open(sys.argv[0] + '.closed', 'w').close()
signal.pause()
)";

TEST_F(PerfProcessTest, HasTheLastMessageOfAPerfThatIsExiting) {
  const auto words = stand_in(kCloses);
  PerfProcess perf{words};
  const auto deadline = soon();
  while (!std::filesystem::exists(words.perf + ".closed") && !deadline.expired()) {
    ::sched_yield();
  }
  auto* const before = std::signal(SIGPIPE, SIG_IGN);  // as the tool does (StopSignals)
  const auto answer = perf.request("ping", soon());
  (void)std::signal(SIGPIPE, before);
  ASSERT_EQ(answer, Answer::kEnded);
  EXPECT_THAT(perf.stderr_text(), testing::HasSubstr("No such process"));
}

TEST_F(PerfProcessTest, WaitCanBeInterrupted) {
  PerfProcess perf{command({"-o", directory_ / "x.data"})};
  ASSERT_EQ(perf.request("ping", soon()), Answer::kAcknowledged);
  const int interrupted = 1;
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], &interrupted, 1), 1);
  EXPECT_EQ(perf.wait(soon(), ends[0]), std::nullopt) << "the wait ends when it is interrupted";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(PerfProcessTest, CompletesItsFileWhenItsOwnerGivesUp) {
  {
    PerfProcess perf{command({"-o", directory_ / "x.data"})};
    ASSERT_EQ(perf.request("ping", soon()), Answer::kAcknowledged);
    ASSERT_EQ(perf.request("enable", soon()), Answer::kAcknowledged);
  }
  const auto report =
      base::run_captured({"perf", "report", "--header-only", "-i", directory_ / "x.data"}, soon());
  EXPECT_EQ(report.status, (base::ExitStatus{false, 0})) << report.output;
}

// perf's thread for records of BPF programs checks only once a second whether it should end; that
// of this stand-in never does. Both end at a signal that interrupts their poll(2).
constexpr auto kJoinsAThread = R"(#!/usr/bin/env python3
import ctypes, os, signal, sys, threading
commands, answers = map(int, next(word for word in sys.argv if word.startswith('fd:'))[3:].split(','))
signal.signal(signal.SIGCHLD, lambda *ignored: None)
thread = threading.Thread(target=ctypes.CDLL(None).poll, args=(None, 0, -1))
thread.start()
assert os.read(commands, 100) == b'stop\n'
os.write(answers, b'ack\n\0')
os.write(2, b'[ perf record: Captured and wrote 0.001 MB x.data (1 samples) ]\n')
thread.join()
)";

TEST_F(PerfProcessTest, DoesNotWaitForItsThreadsOnceItHasWrittenItsFile) {
  PerfProcess perf{stand_in(kJoinsAThread)};
  ASSERT_EQ(perf.request("stop", soon()), Answer::kAcknowledged);
  EXPECT_EQ(perf.wait_for_file(soon()), (base::ExitStatus{false, 0})) << perf.stderr_text();
}

TEST(OutputRollbackTest, PutsTheOldFileBack) {
  test::TempDir directory;
  const auto path = directory.file("perf.data", "old");
  const OutputRollback rollback{{.path = path}};
  std::filesystem::rename(path, path + ".old");
  (void)directory.file("perf.data", "new");
  rollback.undo();
  EXPECT_EQ(std::filesystem::file_size(path), 3U);
  EXPECT_FALSE(std::filesystem::exists(path + ".old"));

  const OutputRollback fresh{{.path = directory / "other"}};
  (void)directory.file("other", "new");
  fresh.undo();
  EXPECT_FALSE(std::filesystem::exists(directory / "other"));
}

// With --threads.
TEST(OutputRollbackTest, PutsAFileBackInPlaceOfADirectory) {
  test::TempDir directory;
  const auto path = directory.file("perf.data", "old");
  const auto record = [&] {
    std::filesystem::create_directory(path);
    (void)directory.file("perf.data/data", "new");
  };
  const OutputRollback rollback{{.path = path}};
  std::filesystem::rename(path, path + ".old");
  record();
  rollback.undo();
  EXPECT_EQ(base::read_file(path), "old");
  EXPECT_FALSE(std::filesystem::exists(path + ".old"));

  std::filesystem::remove(path);
  const OutputRollback fresh{{.path = path}};
  record();
  fresh.undo();
  EXPECT_FALSE(std::filesystem::exists(path));

  record();
  const OutputRollback older{{.path = path}};
  older.undo();
  EXPECT_TRUE(std::filesystem::exists(path + "/data")) << "it is as it was";
}

// perf renames the link, not its target.
TEST(OutputRollbackTest, PutsALinkBack) {
  test::TempDir directory;
  const auto precious = directory.file("precious", "kept");
  const auto path = directory / "perf.data";
  std::filesystem::create_symlink(precious, path);
  const OutputRollback rollback{{.path = path}};
  std::filesystem::rename(path, path + ".old");
  (void)directory.file("perf.data", "new");
  rollback.undo();
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  EXPECT_EQ(base::read_file(precious), "kept");
  rollback.undo();
  EXPECT_TRUE(std::filesystem::is_symlink(path)) << "it is as it was";
}

}  // namespace
}  // namespace pyinject::perf
