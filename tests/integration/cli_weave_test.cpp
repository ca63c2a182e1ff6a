// `perf-pyinject weave`, and recordings that `record` leaves as perf wrote them.
#include "base/file.hpp"
#include "base/text.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace pyinject {
namespace {

using test::ExitStatus;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int kFailed = 125;

class CliWeave : public testing::Test {
 protected:
  // perf's build-id cache is in the test's directory.
  [[nodiscard]] test::RunResult run(const std::vector<std::string>& command) const {
    test::RunOptions options;
    options.child.env["HOME"] = directory_.path();
    return test::run(command, options);
  }
  [[nodiscard]] test::RunResult weave(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {test::tool(), "weave"});
    return run(arguments);
  }
  [[nodiscard]] std::string recorded() const {
    std::string path = directory_ / "perf.data";
    const auto result =
        run({"perf", "record", "-q", "-e", "cpu-clock", "--call-graph", "dwarf,16384", "-o", path,
             "--", "/bin/sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"});
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    return path;
  }
  [[nodiscard]] static std::string contents(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
  }
  [[nodiscard]] static std::vector<std::string> names_in(const std::string& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator{directory}) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  [[nodiscard]] bool has_stacks(const std::string& path) const {
    const auto events = run({"perf", "evlist", "-v", "-i", path});
    EXPECT_EQ(events.status, ExitStatus{}) << events.err;
    return events.out.find("STACK_USER") != std::string::npos;
  }

  test::TempDir directory_;
};

TEST_F(CliWeave, WritesAnotherFileAndKeepsItsInput) {
  const auto input = recorded();
  const auto before = contents(input);
  const std::string output = directory_ / "whole.data";
  const auto result = weave({input, "-o", output});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(output));
  EXPECT_TRUE(contents(input) == before);
  EXPECT_TRUE(has_stacks(input));
  EXPECT_FALSE(has_stacks(output));
}

TEST_F(CliWeave, ReplacesItsInput) {
  const auto input = recorded();
  const auto result = weave({input});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_FALSE(has_stacks(input));
  EXPECT_FALSE(fs::exists(input + ".raw"));
}

// Of a user with `ulimit -f`: as on a full disk. The programs that it starts have the signal.
TEST_F(CliWeave, AFileOfLimitedSizeIsAnError) {
  const auto input = recorded();
  const auto before = contents(input);
  const auto result = run({"sh", "-c", "ulimit -f 8; exec \"$@\"", "sh", test::tool(), "weave",
                           input, "-o", directory_ / "whole.data"});
  EXPECT_EQ(result.status, ExitStatus{.code = kFailed}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("File too large"));
  EXPECT_TRUE(contents(input) == before);
  EXPECT_FALSE(fs::exists(directory_ / "whole.data"));
}

TEST_F(CliWeave, LeavesOtherFilesUnchanged) {
  const auto text = directory_.file("text", "no recording");
  const auto empty = directory_.file("empty", "");
  fs::create_directory(directory_ / "folder");
  const std::string output = directory_ / "output";
  for (const auto& input :
       {text, empty, std::string{directory_ / "folder"}, std::string{directory_ / "nothing"}}) {
    for (const auto& arguments :
         {std::vector{input}, std::vector{input, std::string{"-o"}, output}}) {
      const auto result = weave(arguments);
      EXPECT_EQ(result.status, ExitStatus{.code = kFailed}) << input;
      EXPECT_THAT(result.err, HasSubstr(input));
      EXPECT_EQ(result.out, "");
    }
  }
  EXPECT_EQ(contents(text), "no recording");
  EXPECT_FALSE(fs::exists(output));
  EXPECT_TRUE(fs::is_empty(directory_ / "folder"));
}

TEST_F(CliWeave, ADeviceIsNoOutput) {
  const auto input = recorded();
  const std::string fifo = directory_ / "fifo";
  EXPECT_EQ(run({"mkfifo", fifo}).status, ExitStatus{});
  for (const auto& output : {fifo, directory_.path().string()}) {
    const auto result = weave({input, "-o", output});
    EXPECT_EQ(result.status, ExitStatus{.code = kFailed});
    EXPECT_THAT(result.err, HasSubstr("not a regular file"));
  }
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_TRUE(has_stacks(input));
}

// The signal is pending before the tool starts, so the test does not depend on timing.
TEST_F(CliWeave, CancelledItLeavesAllAsItWas) {
  const auto input = recorded();
  const auto before = contents(input);
  const auto result = run(
      {"perl", "-e",
       "use POSIX; sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGINT)); kill INT => $$; exec @ARGV",
       test::tool(), "weave", input});
  EXPECT_EQ(result.status, ExitStatus{.code = 130}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("cancelled"));
  EXPECT_TRUE(contents(input) == before);
}

class RecordOutput : public CliWeave {
 protected:
  void SetUp() override {
    const auto interpreter = test::find_interpreter({.root = false});
    if (!interpreter) {
      GTEST_SKIP() << "no interpreter";
    }
    python_.emplace(*interpreter, "print('ready', flush=True)\nwhile True: sum(range(1000))");
  }
  [[nodiscard]] std::string command() const {
    return fmt::format("{} record -p {} -F 499", test::tool(), python_->pid().value());
  }
  // Runs the shell command TEXT, which uses "$@" as the command of a recording: it ends when the
  // target has worked.
  [[nodiscard]] test::RunResult run_recording(const std::string& text) const {
    std::vector<std::string> argv{"sh", "-c", text, "sh"};
    const auto worked = test::until_worked(python_->pid(), std::chrono::milliseconds{200});
    argv.insert(argv.end(), worked.begin(), worked.end());
    return run(argv);
  }
  std::optional<test::PythonProcess> python_;
};

TEST_F(RecordOutput, GoesToAPipeUnprocessed) {
  const auto result = run_recording(command() + " -o - -- \"$@\" | perf script -F comm,ip -i -");
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  // "python", or "ld-linux-x86-64" if the only interpreter is run by its own loader.
  const auto comm = base::read_file(fmt::format("/proc/{}/comm", python_->pid().value()));
  EXPECT_THAT(result.out, HasSubstr(base::trim(comm.value())));
  python_->expect_alive();
}

TEST_F(RecordOutput, IsAFileInPlaceOfADirectory) {
  const std::string data = directory_ / "perf.data";
  for (const auto* const before : {"none", "another file"}) {
    const auto result =
        run({"sh", "-c", command() + " --threads -o " + data + " -- sh -c 'exit 7'"});
    EXPECT_EQ(result.status, ExitStatus{.code = 7}) << result.err;
    EXPECT_THAT(result.err, HasSubstr(data)) << before;
    EXPECT_TRUE(fs::is_regular_file(data));
    EXPECT_EQ(fs::status(data).permissions() & fs::perms{0111}, fs::perms{});
    EXPECT_EQ(run({"perf", "report", "--stdio", "-i", data}).status, ExitStatus{});
  }
  EXPECT_TRUE(fs::is_regular_file(data + ".old")) << "perf renames it";
  EXPECT_THAT(names_in(directory_.path()), testing::IsSupersetOf({"perf.data", "perf.data.old"}));
  EXPECT_THAT(names_in(directory_.path()), testing::Not(testing::Contains(HasSubstr(".new"))));
}

// With --keep-raw, the directory has the other name from the beginning.
TEST_F(RecordOutput, KeepsADirectoryOnDemand) {
  const std::string data = directory_ / "perf.data";
  for (int recorded = 0; recorded < 2; ++recorded) {
    const auto result =
        run_recording(command() + " --keep-raw --threads -o " + data + " -- \"$@\"");
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    EXPECT_TRUE(fs::is_regular_file(data));
    EXPECT_TRUE(fs::is_directory(data + ".raw"));
  }
}

// The command puts something else into it.
TEST_F(RecordOutput, SaysThatADirectoryIsLeftOver) {
  const std::string data = directory_ / "perf.data";
  const auto result =
      run({"sh", "-c", command() + " --threads -o " + data + " -- mkdir " + data + "/other"});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("perf's directory is left over: cannot remove"));
  EXPECT_TRUE(fs::is_regular_file(data));
  EXPECT_TRUE(fs::is_directory(data + ".new0/other"));
}

// Answers renameat2 as such a file system does (NFS), and executes its arguments.
constexpr auto kCannotExchange = R"pl(
$code = pack("SCCL", 0x20, 0, 0, 0) . pack("SCCL", 0x15, 0, 1, 316) .
        pack("SCCL", 6, 0, 0, 0x00050016) . pack("SCCL", 6, 0, 0, 0x7fff0000);
$program = pack("Sx6P", 4, $code);
syscall(157, 38, 1, 0, 0, 0) == 0 && syscall(157, 22, 2, $program) == 0 or die $!;
exec @ARGV;
)pl";

TEST_F(RecordOutput, TakesThePlaceOfADirectoryWithoutAnExchange) {
  const std::string data = directory_ / "perf.data";
  const auto result = run_recording(fmt::format("perl -e '{}' -- {} --threads -o {} -- \"$@\"",
                                                kCannotExchange, command(), data));
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_TRUE(fs::is_regular_file(data));
  EXPECT_THAT(names_in(directory_.path()), testing::Not(testing::Contains(HasSubstr(".new"))));
}

TEST_F(RecordOutput, IsReadFromPerfsDirectory) {
  const std::string data = directory_ / "perf.data";
  const auto recorded = run_recording(
      fmt::format("perf record -q -F 499 -p {} --call-graph dwarf,8192 --threads -o {} -- \"$@\"",
                  python_->pid().value(), data));
  EXPECT_EQ(recorded.status, ExitStatus{}) << recorded.err;
  const auto in_place = weave({data});
  EXPECT_EQ(in_place.status, ExitStatus{.code = kFailed});
  EXPECT_THAT(in_place.err, HasSubstr("weave DIRECTORY -o FILE"));
  for (const auto& verb : {std::vector<std::string>{"report"},
                           {"export", "-f", "folded", "-o", "-"},
                           {"flamegraph", "-o", directory_ / "picture.html"}}) {
    std::vector<std::string> command{test::tool()};
    command.insert(command.end(), verb.begin(), verb.end());
    command.push_back(data);
    const auto result = run(command);
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    EXPECT_THAT(result.err, HasSubstr("is a directory (--threads)")) << verb.front();
    EXPECT_THAT(result.err, HasSubstr("are not unwound")) << verb.front();
  }
  const std::string whole = directory_ / "whole.data";
  const auto result = weave({data, "-o", whole});
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  EXPECT_EQ(fs::status(whole).permissions() & fs::perms{0111}, fs::perms{});
  const auto report = run({test::tool(), "report", "--by", "native", whole});
  EXPECT_EQ(report.status, ExitStatus{}) << report.err;
  EXPECT_EQ(report.err.find("not unwound"), std::string::npos) << report.err;
  EXPECT_FALSE(has_stacks(whole));
}

// The user asked for off-CPU times, which only a completed file has.
TEST_F(RecordOutput, FailsIfItsFileCannotBeProcessed) {
  const std::string data = directory_ / "perf.data";
  const auto result =
      run({"sh", "-c",
           fmt::format("{} --off-cpu -o {} -- sh -c 'sleep 0.1; rm {}'", command(), data, data)});
  EXPECT_EQ(result.status, ExitStatus{.code = kFailed}) << result.err;
  EXPECT_THAT(result.err, HasSubstr("error: "));
  EXPECT_THAT(result.err, HasSubstr("times off the processor are lost"));
}

TEST_F(RecordOutput, KeepsPerfsFileOnDemand) {
  const std::string data = directory_ / "perf.data";
  const std::string options = " --call-graph dwarf,8192 -o " + data;
  for (const std::string keep : {"", " --keep-raw"}) {
    const auto result = run_recording(fmt::format("{}{}{} -- \"$@\"", command(), keep, options));
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    EXPECT_FALSE(has_stacks(data));
    EXPECT_EQ(fs::exists(data + ".raw"), !keep.empty());
  }
  EXPECT_TRUE(has_stacks(data + ".raw"));
}

}  // namespace
}  // namespace pyinject
