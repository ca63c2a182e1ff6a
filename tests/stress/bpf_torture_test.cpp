// The programs of tests/targets/stress under the BPF engine. Nothing in them changes: while they
// are stopped, not a byte, register or descriptor, both when a recording starts and when it ends;
// while they run, nothing that a trampoline needs, and their results are right at the end.
#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/stat.hpp"
#include "pyinject/python/detector.hpp"
#include "stress/kinds.hpp"
#include "stress/leftovers.hpp"
#include "stress/stressed_target.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/covering.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"
#include "support/untouched.hpp"
#include "tracee/registers.hpp"
#include "tracee/stopped_process.hpp"
#include "tracee/tracee_memory.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include <sched.h>
#include <sys/wait.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using testing::IsEmpty;

// A recording that would be killed if it traced any process or wrote into another process by a
// system call.
class Recording {
 public:
  Recording(base::Pid target, const std::string& engine)
      : child_{{targets_dir() + "/without", "ptrace", tool(), "record", "--engine", engine, "-F",
                "999", "-e", "cpu-clock", "-o", directory_ / "data", "-p",
                std::to_string(target.value()), "--", "sh", "-c", "echo go; read word || true"}} {}
  // False: it was refused or has exited.
  [[nodiscard]] bool begins() { return child_.read_line(Deadline::after(kPatience)) == "go"; }
  [[nodiscard]] std::optional<ExitStatus> end() {
    child_.close_stdin();
    return child_.wait(Deadline::after(kPatience));
  }
  [[nodiscard]] const std::string& messages() const { return child_.err(); }

 private:
  TempDir directory_;
  ChildProcess child_;
};

// Keeps all threads of a process stopped during its lifetime.
class Stopped {
 public:
  explicit Stopped(base::Pid pid) : pid_{pid} {
    ::kill(pid.value(), SIGSTOP);
    const auto deadline = Deadline::after(kPatience);
    siginfo_t info{};
    while (info.si_pid == 0 && !deadline.expired()) {
      ::waitid(P_PID, static_cast<id_t>(pid.value()), &info, WSTOPPED | WNOWAIT | WNOHANG);
      ::sched_yield();
    }
    EXPECT_EQ(info.si_pid, pid.value()) << "the process does not stop";
  }
  ~Stopped() {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_.value()), &info, WSTOPPED | WNOHANG);
    ::kill(pid_.value(), SIGCONT);
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  base::Pid pid_;
};

using RegistersOfThreads = std::map<base::Tid, std::pair<std::string, std::string>>;

// The general and extended registers of a stopped process's threads, as bytes. Empty for a process
// that traces itself.
RegistersOfThreads registers_of(base::Pid pid) {
  RegistersOfThreads registers;
  auto result = tracee::StoppedProcess::stop(procfs::read_process_id(pid).value(),
                                             Deadline::after(kPatience));
  if (const auto* const failure = std::get_if<tracee::StopFailure>(&result)) {
    EXPECT_EQ(failure->why, tracee::StopFailure::Why::kTraced) << failure->detail;
    return registers;
  }
  for (const auto& thread : std::get<tracee::StoppedProcess>(result).threads()) {
    const auto general = tracee::read_registers(thread.tid).value().general;
    const auto extended = tracee::read_extended_state(thread.tid).value();
    registers[thread.tid] = {
        std::string{reinterpret_cast<const char*>(&general), sizeof general},
        std::string{reinterpret_cast<const char*>(extended.data()), extended.size()}};
  }
  return registers;
}

bool can_be_stopped(const Kind& kind) {
  return kind.care != Care::kStops && kind.care != Care::kMainGone && kind.care != Care::kExecutes;
}

// Ignores signals that become pending while the process is stopped: from its own timers, and from
// its children, which are not stopped.
std::vector<std::string> differences(const Untouched& before, const Kind& kind) {
  constexpr std::uint64_t kOfChildren = std::uint64_t{1} << (SIGCHLD - 1);
  auto lines = before.differences();
  std::erase_if(lines, [&](const std::string& line) {
    std::uint64_t is = 0;
    std::uint64_t was = 0;
    return (kind.name == "signals" && line.find("Pnd") != std::string::npos) ||
           (std::sscanf(line.c_str(), "process: ShdPnd %" SCNx64 " was %" SCNx64, &is, &was) == 2 &&
            ((is ^ was) & ~kOfChildren) == 0);
  });
  return lines;
}

// Checks the places where the other engine would leave traces.
std::vector<std::string> traces_of_a_trampoline(base::Pid pid,
                                                std::optional<python::Reason> expected) {
  std::vector<std::string> found;
  const auto detector = python::make_detector();
  const auto detection = detector->detect(pid);
  const auto* const target = std::get_if<python::Target>(&detection);
  if (target == nullptr) {
    // Some kinds are refused, with this reason only: they would never have been switched on.
    const auto& refusal = std::get<python::Refused>(detection).refusal;
    return refusal.reason == expected ? found : std::vector<std::string>{python::describe(refusal)};
  }
  const tracee::TraceeMemory memory{pid};
  if (memory.read_value<std::uint64_t>(target->addresses.eval_frame).value_or(0) != 0) {
    found.emplace_back("it has an evaluator");
  }
  const auto mailbox =
      memory.read_value<std::array<std::uint64_t, 20>>(target->addresses.mailbox).value();
  if (std::ranges::any_of(mailbox, [](std::uint64_t word) { return word != 0; })) {
    found.emplace_back("it has a mailbox");
  }
  return found;
}

struct Case {
  Kind kind;
  Interpreter interpreter;
};

// NOLINTNEXTLINE(readability-identifier-naming): the name that GoogleTest looks for
void PrintTo(const Case& one, std::ostream* stream) {
  *stream << one.kind.name << " on " << one.interpreter.name;
}

// Each kind on one interpreter, versions in rotation. Kinds that need a module run on an
// interpreter that scripts/pythons installed with modules.
std::vector<Case> cases() {
  const auto versions = interpreters({.each_version = Prefer::kLoader});
  std::vector<Case> all;
  for (const auto& kind : kinds()) {
    // A program that ends by itself would exit before it could be observed.
    if (kind.care != Care::kEndsItself && !versions.empty()) {
      const auto brought = std::ranges::find_if(
          versions, [](const auto& one) { return one.name.ends_with("_loader"); });
      all.push_back({kind, !kind.module.empty() && brought != versions.end()
                               ? *brought
                               : versions[all.size() % versions.size()]});
    }
  }
  return all;
}

class BpfTorture : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    const auto& [kind, interpreter] = GetParam();
    if (kind.care == Care::kMainGone && !interpreter.root.empty()) {
      GTEST_SKIP() << "it looks at /proc, which " << interpreter.name << " has not";
    }
    auto argv = interpreter.command;
    argv.insert(argv.end(), {"-c", fmt::format("import {}", kind.module)});
    if (!kind.module.empty() && run(argv).status != ExitStatus{}) {
      GTEST_SKIP() << interpreter.name << " has no " << kind.module;
    }
  }
  static void expect_works_on(StressedTarget& target) {
    EXPECT_TRUE(target.works_on(target.rounds() + 2)) << target.whereabouts();
  }
  static void expect_untraced(StressedTarget& target) {
    EXPECT_THAT(left_in_threads(target.pid(), GetParam().kind.care == Care::kStops), IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(target.map_path()));
  }
};

TEST_P(BpfTorture, ChangesNothing) {
  const auto& [kind, interpreter] = GetParam();
  StressedTarget target{interpreter, kind};
  std::optional<Snapshot> before;
  if (kind.care != Care::kMainGone) {
    before = take_snapshot(target.pid());
  }
  target.go();
  ASSERT_TRUE(target.works_on(target.rounds())) << target.whereabouts();
  Recording recording{target.pid(), "bpf"};
  if (can_be_stopped(kind)) {
    const Stopped stopped{target.pid()};
    const auto registers = registers_of(target.pid());
    const Untouched untouched{target.pid(), false};
    ASSERT_TRUE(recording.begins()) << recording.messages();
    EXPECT_THAT(differences(untouched, kind), IsEmpty()) << "at the start of the recording";
    EXPECT_TRUE(registers_of(target.pid()) == registers) << "at the start of the recording";
  } else if (!recording.begins()) {
    // A program that keeps exec'ing, or whose process is a zombie, may be refused.
    EXPECT_TRUE(kind.must || !kind.may.empty()) << recording.messages();
    EXPECT_EQ(recording.end(), (ExitStatus{.code = 125})) << recording.messages();
  }
  expect_works_on(target);
  expect_untraced(target);
  if (can_be_stopped(kind)) {
    const Stopped stopped{target.pid()};
    const auto registers = registers_of(target.pid());
    const Untouched untouched{target.pid(), false};
    EXPECT_EQ(recording.end(), ExitStatus{}) << recording.messages();
    EXPECT_THAT(differences(untouched, kind), IsEmpty()) << "at the end of the recording";
    EXPECT_TRUE(registers_of(target.pid()) == registers) << "at the end of the recording";
    EXPECT_THAT(traces_of_a_trampoline(target.pid(), kind.must_for(interpreter.minor)), IsEmpty());
  } else {
    (void)recording.end();
  }
  expect_works_on(target);
  target.stop();
  EXPECT_THAT(target.verdict().value_or("none"), testing::MatchesRegex("right [0-9]+ off"));
  if (before && kind.care != Care::kExecutes) {
    EXPECT_THAT(left_in_process(*before, take_snapshot_after_exits(target.pid())), IsEmpty());
  }
  EXPECT_EQ(target.end(), ExitStatus{}) << target.whereabouts();
  EXPECT_EQ(target.errors(), "");
}

COVER(BpfTorture, 3);
INSTANTIATE_TEST_SUITE_P(Pythons, BpfTorture, testing::ValuesIn(cases()), [](const auto& one) {
  return fmt::format("{}_{}", one.param.kind.name, one.param.interpreter.name);
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BpfTorture);

// Verifies that such a recording would be killed.
TEST(WithoutPtrace, TheTrampolineCannotBeSwitchedOn) {
  const auto all = cases();
  if (all.empty()) {
    GTEST_SKIP() << "no interpreter (scripts/pythons)";
  }
  StressedTarget target{all.front().interpreter, all.front().kind};
  Recording recording{target.pid(), "trampoline"};
  EXPECT_FALSE(recording.begins());
  EXPECT_EQ(recording.end(), (ExitStatus{.signal = SIGSYS}));
}

}  // namespace
}  // namespace pyinject::test
