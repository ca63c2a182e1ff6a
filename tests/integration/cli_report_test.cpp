// What `report` writes to terminals, the pager and colours; and files of output that are none.
#include "pyinject/base/unique_fd.hpp"
#include "support/child_process.hpp"
#include "support/made_perf_data.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/pty_process.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject {
namespace {

using base::Deadline;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kFiles = 50;  // each is a row of the table
constexpr int kTall = 100;            // rows of a terminal
constexpr int kShort = 20;
constexpr const char* kMarking = "PAGER='sed s/^/paged:/'";

class CliReport : public testing::Test {
 protected:
  CliReport() {
    test::MadePerfData data;
    data.events = {test::made_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)};
    const std::uint64_t task = 7 | std::uint64_t{7} << 32U;
    for (std::uint64_t i = 0; i < kFiles; ++i) {
      const auto begin = (i + 1) << 20U;
      data.data += test::made_record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
                                     test::words(task, begin, 0x1000, 0, 0, 0, 0, PROT_EXEC) +
                                         test::padded(fmt::format("/no/such/file{}", i)) +
                                         test::words(task, 1)) +
                   test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                                     test::words(begin, task, 2 + i));
    }
    file_ = directory_.file("perf.data", data.bytes());
  }
  [[nodiscard]] std::string command(const std::string& options = {}) const {
    return fmt::format("{} report --by native {} {}", test::tool(), options, file_);
  }
  // The output of COMMAND on a terminal of that many ROWS. ENVIRONMENT: assignments of sh(1).
  static std::string on_terminal(int rows, const std::string& environment,
                                 const std::string& command) {
    test::PtyProcess terminal{
        {"/bin/sh", "-c",
         fmt::format("stty rows {} columns 80; unset LESS PERF_PAGER PAGER NO_COLOR; {} {}; "
                     "echo status $?",
                     rows, environment, command)}};
    EXPECT_EQ(terminal.wait(Deadline::after(test::kPatience)), test::ExitStatus{});
    EXPECT_THAT(terminal.screen(), HasSubstr("status 0"));
    return terminal.screen();
  }

  test::TempDir directory_;
  std::string file_;
};

TEST_F(CliReport, APipeIsWrittenNotReplaced) {
  const auto pipe = directory_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const base::UniqueFd reader{::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};
  const auto exported =
      test::run({test::tool(), "export", "-f", "folded", "-o", pipe.string(), file_});
  EXPECT_EQ(exported.status, test::ExitStatus{}) << exported.err;
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::string text(4096, '\0');
  EXPECT_GT(::read(reader.get(), text.data(), text.size()), 0);
}

TEST_F(CliReport, LongTextGoesThroughThePager) {
  EXPECT_THAT(on_terminal(kShort, kMarking, command()),
              AllOf(HasSubstr("paged:"), HasSubstr("[file49]")));
  EXPECT_THAT(on_terminal(kShort, "PAGER=true", command()), Not(HasSubstr("[file49]")));
  EXPECT_THAT(on_terminal(kShort, "PERF_PAGER='sed s/^/perf:/' PAGER=true", command()),
              AllOf(HasSubstr("perf:"), HasSubstr("[file49]")));
}

TEST_F(CliReport, AFileWithoutLinesIsNoted) {
  constexpr const char* kNote = "has no lines: each row is a function; record with --engine auto";
  const auto noted = test::run({"/bin/sh", "-c", command("--view lines")});
  EXPECT_THAT(noted.err, HasSubstr(kNote));
  EXPECT_THAT(noted.out, HasSubstr("[file49]"));
  EXPECT_THAT(test::run({"/bin/sh", "-c", command()}).err, Not(HasSubstr(kNote)));
}

TEST_F(CliReport, OtherTextGoesDirectlyToStdout) {
  const auto direct = AllOf(HasSubstr("[file0]"), HasSubstr("[file9]"), Not(HasSubstr("paged:")));
  EXPECT_THAT(on_terminal(kTall, kMarking, command()), direct) << "it fits";
  EXPECT_THAT(on_terminal(kShort, kMarking, command("--limit 10")), HasSubstr("(40 more)"));
  EXPECT_THAT(on_terminal(kShort, kMarking, command("--limit 10")), Not(HasSubstr("paged:")));
  EXPECT_THAT(on_terminal(kShort, kMarking, command("--csv")), direct) << "it is for programs";
  EXPECT_THAT(on_terminal(kShort, kMarking, command() + " | cat"), direct) << "no terminal";
  EXPECT_THAT(on_terminal(kShort, "TERM=dumb " + std::string{kMarking}, command()), direct);
  for (const auto* const none : {"PAGER=", "PAGER=cat", "PERF_PAGER= PAGER=true"}) {
    EXPECT_THAT(on_terminal(kShort, none, command()), direct) << none;
  }
  EXPECT_THAT(on_terminal(kShort, "PAGER=/no/such/pager", command()), direct);
}

TEST_F(CliReport, ColoursAreForTerminals) {
  const auto coloured = HasSubstr("\x1b[1m");
  EXPECT_THAT(on_terminal(kTall, "", command()), AllOf(coloured, HasSubstr("\x1b[32m")));
  for (const auto* const none : {"NO_COLOR=1", "TERM=dumb"}) {
    EXPECT_THAT(on_terminal(kTall, none, command()),
                AllOf(HasSubstr("[file9]"), Not(HasSubstr("\x1b["))))
        << none;
  }
  EXPECT_THAT(on_terminal(kTall, "NO_COLOR=", command()), coloured) << "empty";
  for (const auto& other : {command() + " | cat", command("--json"), command("--csv")}) {
    EXPECT_THAT(on_terminal(kTall, "", other), AllOf(HasSubstr("[file9]"), Not(HasSubstr("\x1b["))))
        << other;
  }
}

}  // namespace
}  // namespace pyinject
