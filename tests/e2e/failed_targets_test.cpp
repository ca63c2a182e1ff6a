// Recordings that fail, wholly or in part, by what their targets do or are, and by what the tool
// may not do. See failed_recordings_test.cpp.
#include "e2e/failed_recordings.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/deadline.hpp"
#include "support/page.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>

#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

// A cgroup (version 2) whose processes can be stopped.
class Freezer {
 public:
  Freezer() {
    std::ifstream mounts{"/proc/self/mounts"};
    for (std::string line; std::getline(mounts, line);) {
      std::istringstream words{line};
      std::string what;
      std::string where;
      std::string type;
      words >> what >> where >> type;
      const auto path = fmt::format("{}/pyinject-frozen-{}", where, ::getpid());
      if (std::error_code error; type == "cgroup2" && fs::create_directory(path, error)) {
        path_ = path;
        return;
      }
    }
  }
  ~Freezer() {
    if (valid()) {
      write("cgroup.freeze", "0");
      if (!pid_.empty()) {
        write("../cgroup.procs", pid_);
      }
      std::error_code error;
      fs::remove(path_, error);
    }
  }
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;

  // False: there is no version 2 hierarchy, or no right to use it.
  [[nodiscard]] bool valid() const { return !path_.empty(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  void freeze(const std::string& pid) {
    pid_ = pid;
    write("cgroup.procs", pid);
    write("cgroup.freeze", "1");
    const auto deadline = base::Deadline::after(kPatience);
    const auto frozen = [this] {
      return contents_of(path_ + "/cgroup.events").find("frozen 1") != std::string::npos;
    };
    while (!frozen() && !deadline.expired()) {
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    EXPECT_TRUE(frozen());
  }

 private:
  void write(const std::string& file, const std::string& text) const {
    std::ofstream{path_ + "/" + file} << text;
  }

  std::string path_;
  std::string pid_;
};

constexpr auto kNoFreezer = "no cgroup of version 2 can be made here";

TEST_P(FailedRecordings, SayThatTheTargetIsFrozen) {
  Freezer freezer;
  if (!freezer.valid()) {
    GTEST_SKIP() << kNoFreezer;
  }
  start();
  freezer.freeze(pid());
  const auto frozen = fmt::format("frozen by its cgroup {}", freezer.path());
  if (trampoline()) {
    expect_refused({frozen, "(deadline)", "the request was withdrawn"});
    return;
  }
  const auto messages = run_tool(record_until()).err;
  EXPECT_THAT(messages, HasSubstr(": 0 samples"));
  expect_readers_repeat(messages, frozen);
  expect_readers_say(HasSubstr("no samples"));
  const TempDir pages;
  const auto why = pages / "why.html";
  EXPECT_THAT(run_tool({"why", "-d", "1", "-p", pid(), "-o", why}).out, HasSubstr(frozen));
  EXPECT_THAT(data_of_page(why).at("notes").dump(), HasSubstr(frozen));
  const auto top = pages / "top.html";
  EXPECT_THAT(run_tool({"top", "--once", "-d", "1", "-p", pid(), "-o", top}).err,
              HasSubstr(frozen));
  EXPECT_THAT(data_of_page(top).at("notes").dump(), HasSubstr(frozen));
}

TEST_P(FailedRecordings, SayThatTheTargetWasFrozenMeanwhile) {
  Freezer freezer;
  if (!freezer.valid()) {
    GTEST_SKIP() << kNoFreezer;
  }
  start();
  RunningRecord running{arguments()};
  work();
  freezer.freeze(pid());
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  expect_readers_repeat(running.child().err(),
                        fmt::format("frozen by its cgroup {}", freezer.path()));
}

TEST_P(FailedRecordings, SayThatTheTargetWasStoppedMeanwhile) {
  auto& target = start();
  RunningRecord running{arguments()};
  work();
  target.pause();
  ASSERT_TRUE(comes_to_job_control_stop(process()));
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  expect_readers_repeat(running.child().err(), "stopped by job control");
}

// From then on, mmap fails.
constexpr auto kForbidsMmap = R"py(
import ctypes, struct
exec("\n".join(f"def f{number}(): pass" for number in range(9000)), names)
libc = ctypes.CDLL(None)
code = ctypes.create_string_buffer(struct.pack("HBBI", 0x20, 0, 0, 0) + struct.pack("HBBI", 0x15, 0, 1, 9) +
                                   struct.pack("HBBI", 6, 0, 0, 0x0005000c) + struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", 4, ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0
for number in range(9000):
    names[f"f{number}"]()
)py";

TEST_P(FailedRecordings, SayThatASeccompFilterForbidsTheActivation) {
  if (!trampoline()) {
    GTEST_SKIP() << "needs nothing of the process";
  }
  auto& target = start(working_program(kForbidsMmap));
  target.send_line("more");
  ASSERT_EQ(target.read_line(), "new");
  expect_refused({"its seccomp filter forbids mmap", "(seccomp)"});
}

TEST_P(FailedRecordings, SayThatALaterSeccompFilterForbidsTrampolines) {
  if (!trampoline()) {
    GTEST_SKIP() << "needs nothing of the process";
  }
  if (GetParam().python.minor == 12) {
    GTEST_SKIP() << "CPython 3.12 crashes then, also with -X perf (docs/safety.md)";
  }
  const auto messages = record_new_functions(working_program(kForbidsMmap));
  EXPECT_THAT(messages, HasSubstr("with functions that have no name"));
  expect_readers_say(HasSubstr("with functions that have no name"));
}

TEST_P(FailedRecordings, SayThatTheProgramClosedItsMap) {
  if (!trampoline()) {
    GTEST_SKIP() << "there is no map";
  }
  const auto messages = record_new_functions(working_program("import os\nos.closerange(3, 256)"));
  EXPECT_THAT(messages, HasSubstr("with functions that have no name"));
  expect_readers_say(HasSubstr("with functions that have no name"));
}

TEST_P(FailedRecordings, SayThatTheProgramSwitchedTheTrampolineOff) {
  if (!trampoline()) {
    GTEST_SKIP() << "needs no trampoline";
  }
  const auto messages = record_new_functions(working_program("sys.deactivate_stack_trampoline()"));
  expect_readers_repeat(messages, "the program has switched the trampoline off");
}

TEST_P(FailedRecordings, SayThatRightsAreMissing) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "setpriv needs root";
  }
  start();
  const std::vector<std::string> without{"setpriv", "--bounding-set=-all", "--inh-caps=-all"};
  expect_refused({trampoline() ? "(no_permission)" : "(no_rights)"}, without);
  for (const auto& verb : {std::vector<std::string>{"why", "-d", "1"}, {"top", "--once"}}) {
    auto command = without;
    command.push_back(tool());
    command.insert(command.end(), verb.begin(), verb.end());
    command.insert(command.end(), {"-p", pid()});
    const auto result = run(command);
    EXPECT_EQ(result.status, ExitStatus{.code = 125}) << result.err;
    EXPECT_THAT(result.err, AnyOf(HasSubstr("(no_permission)"), HasSubstr("(no_rights)")));
  }
}

TEST_P(FailedRecordings, SayThatDescriptorsAreShort) {
  start();
  expect_refused({"Too many open files"}, {"prlimit", "--nofile=20"});
}

TEST_P(FailedRecordings, SayThatTheSizeOfFilesIsLimited) {
  start();
  const auto arguments = record_until({"sleep", "30"}, {"--call-graph", "dwarf,8192"});
  std::vector<std::string> command{"prlimit", "--fsize=200000", tool()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto result = run(command);
  EXPECT_EQ(result.status, ExitStatus{.code = 125});
  EXPECT_THAT(result.err, HasSubstr("perf record died"));
  expect_readers_say(AnyOf(HasSubstr("perf record died"), HasSubstr("no samples")));
}

TEST_P(FailedRecordings, SayThatTheFileWasCutShort) {
  start();
  RunningRecord running{arguments()};
  work();
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  fs::resize_file(data(), fs::file_size(data()) / 2);
  expect_readers_say(HasSubstr("damaged"));
  fs::resize_file(data(), 0);
  expect_readers_say(HasSubstr("it is not a perf.data file"));
}

}  // namespace
}  // namespace pyinject::test
