// Names that stay with a recording: after the exit of the program, when another process has its pid
// and another map replaces its own, and on another machine.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/perf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;

constexpr int kFewest = 60;  // samples

// An idle process with the pid of one that has exited. Needs root.
class ReusedPid {
 public:
  explicit ReusedPid(pid_t pid) {
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<std::uintptr_t>(&pid);
    arguments.set_tid_size = 1;
    const auto result = ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (result == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) {
        ::pause();
      }
    }
    if (result < 0) {
      throw base::SystemError{fmt::format("cannot have the process number {}", pid), errno};
    }
    pid_ = static_cast<pid_t>(result);
  }
  ~ReusedPid() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ReusedPid(const ReusedPid&) = delete;
  ReusedPid& operator=(const ReusedPid&) = delete;

 private:
  pid_t pid_ = 0;
};

// Renames every symbol in it.
void spoil_map(const std::string& path) {
  const auto map = base::read_file(path).value_or("");
  EXPECT_THAT(map, HasSubstr(" py::request:"));
  std::string wrong;
  for (const auto line : base::split(base::trim(map), '\n')) {
    wrong += fmt::format("{} py::wrong:/wrong.py\n", line.substr(0, line.find(" py::")));
  }
  fs::remove(path);
  const base::UniqueFd file{::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)};
  base::write_all(file.get(), wrong, path);
}

// A machine from perf's point of view: it has its own build-id cache.
class Machine {
 public:
  Machine() {
    config_ = directory_.file("perfconfig", fmt::format("[buildid]\n\tdir = {}\n", cache()));
    fs::create_directory(cache());
  }

  [[nodiscard]] std::string cache() const { return directory_ / "cache"; }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }
  [[nodiscard]] ChildOptions options() const {
    return {.env = {{"PERF_CONFIG", config_}},
            .unset = {},
            .uid = {},
            .directory = directory_.path(),
            .root = {}};
  }
  [[nodiscard]] std::string run(const std::vector<std::string>& command) const {
    const auto result =
        test::run(command, {.child = options(), .input = {}, .deadline = std::chrono::seconds{60}});
    EXPECT_EQ(result.status, ExitStatus{}) << testing::PrintToString(command) << result.err;
    return result.out;
  }
  // Runs the script perf-archive of PERF. The perfs in the roots are wrappers; without one of our
  // own, the script would find the programs of their root.
  [[nodiscard]] std::string archive(const std::string& perf) const {
    const auto directory = std::string{base::trim(run({perf, "--exec-path"}))};
    const auto wrapper = directory_.file("perf", "#!/bin/sh\nexec '" + perf + "' \"$@\"\n");
    fs::permissions(wrapper, fs::perms::owner_all);
    (void)run({"/usr/bin/env", "PATH=" + directory_.path().string() + ":/usr/bin:/bin",
               "PERF_BUILDID_DIR=" + cache(), directory + "/perf-archive", "perf.data"});
    return data() + ".tar.bz2";
  }
  [[nodiscard]] std::vector<Chain> chains(const std::string& perf) const {
    std::vector<Chain> result;
    for (auto& sample : read_samples(perf, data(), options())) {
      result.push_back(std::move(sample.python));
    }
    return result;
  }

 private:
  TempDir directory_;
  std::string config_;
};

struct Round {
  std::string perf;
  int minor = 0;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Round& round, std::ostream* stream) {
  *stream << round.perf << " on 3." << round.minor;
}

struct RoundName {
  template <typename Info>
  std::string operator()(const Info& info) const {
    std::string text = info.param.perf + "_py3_" + std::to_string(info.param.minor);
    std::ranges::replace(text, '.', '_');
    return text;
  }
};

class LastingNames : public testing::TestWithParam<Round> {};

TEST_P(LastingNames, SurviveTheProcessItsMapItsNumberAndItsMachine) {
  const auto python = plain_interpreter(GetParam().minor);
  const auto perf = find_perf(GetParam().perf);
  if (!python || !perf) {
    GTEST_SKIP() << "no " << GetParam().perf << " or no CPython 3." << GetParam().minor
                 << " (scripts/pythons)";
  }
  ServedTree target{*python};
  std::optional<Machine> here{std::in_place};
  RunningRecord running{
      {"--perf", *perf, "-p", target.pid(), "-F", "999", "-e", "cpu-clock", "-o", here->data()},
      {tool()},
      here->options()};
  target.serve(20, std::chrono::milliseconds{300});
  EXPECT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  EXPECT_THAT(running.child().err(), Not(HasSubstr("names are kept")));
  const auto named = here->chains(*perf);
  EXPECT_GE(std::ranges::count_if(
                named, [](const Chain& chain) { return served_chains().contains(chain); }),
            kFewest);

  (void)target.process().terminate();
  spoil_map(fmt::format("/tmp/perf-{}.map", target.pid()));
  std::optional<ReusedPid> successor;
  if (::geteuid() == 0) {
    successor.emplace(target.process().pid().value());
  }
  EXPECT_EQ(here->chains(*perf), named);
  const auto report = here->run(
      {*perf, "report", "--stdio", "--no-inline", "--children", "-g", "none", "-i", here->data()});
  EXPECT_THAT(report, HasSubstr("py::request:<string>"));
  EXPECT_THAT(report, Not(HasSubstr("wrong")));

  // A file that has been post-processed can be post-processed again.
  const auto again = here->data() + ".again";
  (void)here->run({tool(), "weave", "--perf", *perf, here->data(), "-o", again});
  fs::rename(again, here->data());
  EXPECT_EQ(here->chains(*perf), named);

  const auto archive = here->archive(*perf);
  const Machine there;
  fs::copy(here->data(), there.data());
  (void)there.run({"tar", "-xf", archive, "-C", there.cache()});
  here.reset();
  EXPECT_EQ(there.chains(*perf), named);
}

INSTANTIATE_TEST_SUITE_P(Perfs, LastingNames,
                         testing::Values(Round{"perf", 14}, Round{"perf6.12", 15},
                                         Round{"perf7", 13}),
                         RoundName{});

}  // namespace
}  // namespace pyinject::test
