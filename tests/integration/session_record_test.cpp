// Complete recordings with real perf and real processes; only the injection is a fake.
#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/child.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/record/record_session.hpp"
#include "pyinject/targets/stop_signals.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/fake_python.hpp"
#include "support/guards.hpp"
#include "support/patience.hpp"
#include "support/stand_in_perf.hpp"
#include "support/temp_dir.hpp"
#include "support/until_worked.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

namespace pyinject::record {
namespace {

using base::LogLevel;
using base::Pid;
using testing::HasSubstr;
using testing::IsEmpty;

class QuietObserver : public RecordObserver {
 public:
  void activated(const targets::ActiveTarget& target) override {
    active.push_back(target.target.id.pid);
  }
  void progress(std::chrono::nanoseconds, std::optional<std::uint64_t>) override {
    ++ticks;
    if (on_progress) {
      on_progress();
    }
  }
  void post_processing(double, std::uint64_t) override {}
  void stopped() override { ++stops; }
  void finished(const RecordSummary& result) override { summary = result; }

  std::vector<Pid> active;
  int ticks = 0;
  std::function<void()> on_progress;
  int stops = 0;
  std::optional<RecordSummary> summary;
};

class RecordTest : public testing::Test {
 protected:
  RecordTest() { detector_.only = std::set<Pid>{target_.pid()}; }

  int record(std::vector<std::string> command, std::vector<std::string> perf_options = {}) {
    plan_.targets = Processes{{target_.pid()}};
    plan_.command = std::move(command);
    plan_.maps.folder = directory_.path().string();
    plan_.perf_options = perf::PerfOptions{std::move(perf_options)};
    if (plan_.perf_options.words().empty()) {
      plan_.perf_options = perf::PerfOptions{{"-o", data()}};
    }
    const int status = run();
    EXPECT_THAT(injector_.on, IsEmpty()) << "a target was left active";
    return status;
  }
  // As the command does it.
  int run() {
    targets::StopSignals stop;
    return record::record(plan_, detector_, injector_, logger_, observer_, stop).status;
  }
  [[nodiscard]] std::string data() const { return directory_ / "perf.data"; }
  [[nodiscard]] std::string errors() const { return logger_.text(LogLevel::kError); }
  [[nodiscard]] bool data_is_complete() const {
    const auto report = base::run_captured({"perf", "report", "--stdio", "-i", data()},
                                           base::Deadline::after(test::kPatience));
    return report.status && report.status->success();
  }
  [[nodiscard]] std::string kill_us(const std::string& signal) const {
    return "kill -" + signal + " " + std::to_string(::getpid()) + "; exec sleep 600";
  }

  base::Child target_{{.argv = {"sh", "-c", "while :; do :; done"}, .death_signal = SIGKILL}};
  test::TempDir directory_;
  test::FakeDetector detector_;
  test::FakeInjector injector_;
  test::RecordingLogger logger_;
  QuietObserver observer_;
  RecordPlan plan_;
};

TEST_F(RecordTest, StatusIsTheCommands) {
  EXPECT_EQ(record(test::until_worked(target_.pid(), std::chrono::milliseconds{300}, "exit 7")), 7);
  EXPECT_TRUE(data_is_complete());
  EXPECT_EQ(observer_.active.size(), 1U);
  ASSERT_TRUE(observer_.summary);
  ASSERT_EQ(observer_.summary->files.size(), 1U);
  EXPECT_GT(observer_.summary->files[0].samples.value_or(0), 100U) << "after 300 ms of work";
  EXPECT_EQ(injector_.owner.session.pid.value(), ::getpid());
  EXPECT_EQ(errors(), "");
}

TEST_F(RecordTest, KilledCommandGives128PlusSignal) {
  EXPECT_EQ(record({"sh", "-c", "kill -KILL $$"}), 137);
}

TEST_F(RecordTest, TargetExitsFirst) {
  EXPECT_EQ(
      record({"sh", "-c", "kill " + std::to_string(target_.pid().value()) + "; exec sleep 600"}),
      0);
  EXPECT_THAT(logger_.text(LogLevel::kWarning), HasSubstr("the target exited before"));
  EXPECT_TRUE(data_is_complete());
}

TEST_F(RecordTest, SignalsEndItInGoodOrder) {
  for (const auto& [name, number] :
       {std::pair{"INT", SIGINT}, {"TERM", SIGTERM}, {"HUP", SIGHUP}}) {
    EXPECT_EQ(record({"sh", "-c", kill_us(name)}), 128 + number) << name;
    EXPECT_TRUE(data_is_complete()) << name;
  }
}

// A process that forks a child when it gets SIGUSR1, and then writes its pid to the file "child".
std::unique_ptr<base::Child> forking_process(const test::TempDir& directory) {
  auto parent = std::make_unique<base::Child>(base::ChildOptions{
      .argv = {"sh", "-c",
               "trap 'while kill -0 $$ 2>&-; do :; done & echo $! > " + (directory / "child") +
                   "' USR1; : > " + (directory / "ready") + "; while :; do :; done"},
      .death_signal = SIGKILL});
  while (!std::filesystem::exists(directory / "ready")) {
    ::sched_yield();
  }
  return parent;
}

// The commands of a stand-in that has PARENT fork before the first perf runs, and hands over to
// perf afterwards.
std::string has_it_fork(const test::TempDir& directory, const base::Child& parent) {
  return "child=" + (directory / "child") + "\n[ ! -e $child ] || exec $PERF \"$@\"\nkill -USR1 " +
         std::to_string(parent.pid().value()) + "\nuntil [ -e $child ]; do :; done\n";
}

// perf is started again because a target forked in the meantime; the signal arrives after the first
// perf, a stand-in, has been told to end.
TEST_F(RecordTest, ASignalWhilePerfIsStartedAnewEndsItToo) {
  const auto parent = forking_process(directory_);
  plan_.perf.option = test::stand_in_perf(directory_, has_it_fork(directory_, *parent) +
                                                          "$PERF \"$@\"\n"
                                                          "kill -INT $PPID\n"
                                                          "exec sleep 1000\n");
  plan_.targets = Families{{parent->pid()}};
  plan_.command = {"true"};
  plan_.perf_options = perf::PerfOptions{{"-o", data()}};
  detector_.only = std::set<Pid>{parent->pid()};
  EXPECT_EQ(run(), 130);
  EXPECT_THAT(injector_.calls, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(data())) << "nothing was recorded";
  EXPECT_EQ(logger_.text(LogLevel::kWarning), "");
}

// However long the first perf took to start: on a busy machine, that may be seconds.
TEST_F(RecordTest, ASlowStartMissesNoChild) {
  const auto parent = forking_process(directory_);
  plan_.perf.option = test::stand_in_perf(
      directory_, has_it_fork(directory_, *parent) + "sleep 2.5\nexec $PERF \"$@\"\n");
  plan_.targets = Families{{parent->pid()}};
  // Until the child has worked for 20 ticks.
  plan_.command = {"sh", "-c",
                   "ticks() { cut -d' ' -f14 /proc/$child/stat; }; child=$(cat " +
                       (directory_ / "child") +
                       "); begin=$(ticks); while [ $(ticks) -lt $((begin + 20)) ]; do :; done"};
  plan_.perf_options = perf::PerfOptions{{"-o", data()}};
  detector_.only = std::set<Pid>{parent->pid()};
  EXPECT_EQ(run(), 0);
  const auto child = base::read_file(directory_ / "child", 100).value_or("");
  const auto script = test::run(
      {"perf", "script", "-G", "-i", data(), "-F", "pid", "--pid", std::string{base::trim(child)}});
  EXPECT_THAT(script.out, HasSubstr(base::trim(child))) << script.err;
}

// A pipe cannot be changed afterwards, but these options post-process the file.
TEST_F(RecordTest, APipeIsRefusedWhereTheFileIsToBeChanged) {
  for (const auto engine : {EngineChoice::kTrampoline, EngineChoice::kBpf, EngineChoice::kAuto}) {
    plan_.engine = engine;
    plan_.flags.off_cpu = engine != EngineChoice::kBpf;
    EXPECT_EQ(record({"true"}, {"-o", "-"}), kFailure);
    EXPECT_THAT(errors(),
                HasSubstr(plan_.flags.off_cpu ? "--off-cpu needs perf's output in a file"
                                              : "--engine bpf needs perf's output in a file"));
  }
  EXPECT_THAT(injector_.calls, IsEmpty());
}

// perf does not receive `disable`; the targets stay on until perf has ended.
TEST_F(RecordTest, APerfThatIsTooBusyToListenIsToldToEnd) {
  plan_.perf.option = test::deaf_perf(directory_);
  std::string perf_then;
  injector_.after_deactivation = [&](Pid) {
    perf_then = base::run_captured({"pgrep", "-P", std::to_string(::getpid()), "-x", "perf"},
                                   base::Deadline::after(test::kPatience))
                    .output;
  };
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(record({"sh", "-c", "exit 7"}), 7);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPerfCompletes / 5);
  EXPECT_EQ(perf_then, "") << "switched off while perf recorded";
  EXPECT_THAT(logger_.text(LogLevel::kWarning), HasSubstr("did not disable its events within"));
  EXPECT_TRUE(data_is_complete());
  EXPECT_EQ(errors(), "");
}

TEST_F(RecordTest, EveryFurtherSignalOnlyShortensTheWait) {
  // The last signals may arrive after the end of the session and would kill this process.
  sigset_t interrupt;
  sigset_t before;
  ::sigemptyset(&interrupt);
  ::sigaddset(&interrupt, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  const std::string self = std::to_string(::getpid());
  EXPECT_EQ(record({"sh", "-c",
                    "trap '' TERM; kill -INT " + self + "; kill -INT " + self + "; kill -INT " +
                        self + "; exec sleep 1"}),
            130);
  EXPECT_TRUE(data_is_complete());
  const timespec now{};
  while (::sigtimedwait(&interrupt, nullptr, &now) == SIGINT) {
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A program that records has its own use for signals, and ends a recording itself.
TEST_F(RecordTest, AProgramEndsItWithoutSignals) {
  plan_.targets = Processes{{target_.pid()}};
  plan_.perf_options = perf::PerfOptions{{"-o", data()}};
  targets::StopSwitch stop;
  const auto signals = [] {
    std::vector<int> states;
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
      struct sigaction action {};
      ::sigaction(number, nullptr, &action);
      states.push_back(::sigismember(&blocked, number));
      states.push_back(action.sa_handler == SIG_IGN ? 1 : 0);
    }
    return states;
  };
  const auto before = signals();
  std::vector<int> during;
  observer_.on_progress = [&] {
    during = signals();
    stop.request();
  };
  const auto result = record::record(plan_, detector_, injector_, logger_, observer_, stop);
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.signal, SIGINT);
  ASSERT_TRUE(result.summary) << errors();
  EXPECT_EQ(result.summary->targets, 1U);
  EXPECT_EQ(during, before);
  EXPECT_TRUE(data_is_complete());
  EXPECT_THAT(injector_.on, IsEmpty());
  EXPECT_EQ(stop.next(), std::nullopt) << "it was taken";
}

// As StopSignals when no thread can be created.
class DeafRequests : public targets::StopRequests {
 public:
  void listen(std::function<void(int)> listener) override {
    if (listener) {
      throw base::SystemError{"cannot start the thread that listens to signals", EAGAIN};
    }
  }
};

// A later one of a series may succeed.
TEST_F(RecordTest, AFailureBeforeItBeginsIsLoggedToo) {
  plan_.targets = Processes{{target_.pid()}};
  plan_.perf_options = perf::PerfOptions{{"-o", data()}};
  DeafRequests stop;
  const auto result = record::record(plan_, detector_, injector_, logger_, observer_, stop);
  EXPECT_EQ(result.status, kFailure);
  EXPECT_FALSE(result.summary);
  EXPECT_THAT(errors(), HasSubstr("cannot start the thread that listens to signals"));
  EXPECT_THAT(injector_.calls, IsEmpty());
}

TEST_F(RecordTest, ARequestMadeBeforeItBeginsTouchesNothing) {
  plan_.targets = Processes{{target_.pid()}};
  plan_.perf_options = perf::PerfOptions{{"-o", data()}};
  targets::StopSwitch stop;
  stop.request(SIGTERM);
  const auto result = record::record(plan_, detector_, injector_, logger_, observer_, stop);
  EXPECT_EQ(result.status, 128 + SIGTERM);
  EXPECT_FALSE(result.summary);
  EXPECT_THAT(injector_.calls, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(data()));
}

TEST_F(RecordTest, SignalDuringActivationUndoesIt) {
  injector_.after_activation = [](Pid) { ::kill(::getpid(), SIGINT); };
  const base::Child second{{.argv = {"sleep", "60"}}};
  detector_.only->insert(second.pid());
  plan_.targets = Processes{{target_.pid(), second.pid()}};
  plan_.command = {"true"};
  plan_.perf_options = perf::PerfOptions{{"-o", data()}};
  EXPECT_EQ(run(), 130);
  EXPECT_THAT(injector_.on, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(data())) << "nothing was recorded";
}

TEST_F(RecordTest, RefusedTargetStopsItBeforePerfStarts) {
  detector_.refusals[target_.pid()] = python::Reason::kPythonTooOld;
  EXPECT_EQ(record({"true"}), kFailure);
  EXPECT_FALSE(std::filesystem::exists(data()));
  EXPECT_THAT(errors(), HasSubstr("python_too_old"));
}

TEST_F(RecordTest, FailedActivationLeavesNoFile) {
  injector_.activate_refusals[target_.pid()] = python::Reason::kDeadline;
  const auto old = directory_.file("perf.data", "old");
  EXPECT_EQ(record({"true"}), kFailure);
  EXPECT_EQ(std::filesystem::file_size(old), 3U) << "perf had moved it away";
  EXPECT_FALSE(std::filesystem::exists(old + ".old"));
}

TEST_F(RecordTest, FailedDeactivationIsAFailure) {
  injector_.deactivate_refusals[target_.pid()] = python::Reason::kStopDeadline;
  plan_.targets = Processes{{target_.pid()}};
  plan_.command = {"true"};
  plan_.perf_options = perf::PerfOptions{{"-o", data()}};
  EXPECT_EQ(run(), kFailure);
  EXPECT_THAT(errors(), HasSubstr("still be on"));
  const auto guard = test::guard_of(Pid{::getpid()});
  ASSERT_TRUE(guard) << "the guard no longer tries";
  ::kill(guard->pid.value(), SIGKILL);
  EXPECT_TRUE(guard->ends());
}

TEST_F(RecordTest, SwitchesOffChildrenOfTheTarget) {
  std::unique_ptr<base::Child> child;
  injector_.after_activation = [&](Pid pid) {
    // Like a fork, it runs the target's executable and started after the activation.
    child = std::make_unique<base::Child>(
        base::ChildOptions{.argv = {"sh", "-c", "while :; do :; done"}});
    EXPECT_NE(pid, child->pid());
    detector_.only->insert(child->pid());
    detector_.states[child->pid()] = python::TrampolineState::kOnByUs;
    detector_.owners[child->pid()] = injector_.owner.session;
    injector_.on.insert(child->pid());
  };
  EXPECT_EQ(record({"true"}), 0);
}

TEST_F(RecordTest, CommandThatCannotRunTouchesNothing) {
  EXPECT_EQ(record({"no-such-command"}), 127);
  EXPECT_EQ(record({"/etc/passwd"}), 126);
  EXPECT_THAT(injector_.calls, IsEmpty());
  EXPECT_THAT(errors(), HasSubstr("cannot run 'no-such-command': No such file or directory"));
}

TEST_F(RecordTest, MissingPerfTouchesNothing) {
  plan_.perf.option = "/nonexistent/perf";
  EXPECT_EQ(record({"true"}), kFailure);
  EXPECT_THAT(errors(), HasSubstr("/nonexistent/perf"));
  EXPECT_THAT(injector_.calls, IsEmpty());
}

// perf appends the list of all its options to its message.
TEST_F(RecordTest, AnOptionThatPerfDoesNotKnowIsReportedWithoutPerfsUsage) {
  EXPECT_EQ(record({"true"}, {"--no-perf-has-this-option", "-o", data()}), kUsage);
  EXPECT_THAT(logger_.text(LogLevel::kInfo), HasSubstr("unknown option `no-perf-has-this-option'"));
  EXPECT_THAT(logger_.text(LogLevel::kInfo), testing::Not(HasSubstr("Usage: ")));
}

TEST_F(RecordTest, PerfThatFailsAtOnceTouchesNothing) {
  EXPECT_EQ(record({"true"}, {"-e", "no-such-event", "-o", data()}), kUsage) << "perf's own status";
  EXPECT_EQ(record({"true"}, {"-o", "/nonexistent/folder/x"}), kFailure);
  EXPECT_THAT(errors(), HasSubstr("perf record failed: exit status"));
  EXPECT_THAT(injector_.calls, IsEmpty()) << "perf is started first";
}

TEST_F(RecordTest, PerfThatIsKilledMeanwhileIsAFailure) {
  EXPECT_EQ(
      record({"sh", "-c",
              "kill -KILL $(pgrep -P " + std::to_string(::getpid()) + " -x perf); exec sleep 600"}),
      kFailure);
  EXPECT_THAT(errors(), HasSubstr("killed by signal 9"));
}

TEST_F(RecordTest, PerfThatEndsByItselfIsNoFailure) {
  EXPECT_EQ(record({"sleep", "600"}, {"-F", "5000", "--max-size", "20K", "-o", data()}), 0);
  EXPECT_THAT(logger_.text(LogLevel::kWarning), HasSubstr("perf record ended by itself"));
}

TEST_F(RecordTest, FullDiskIsAFailure) {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", "", MS_REC | MS_PRIVATE, "") != 0 ||
      ::mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "needs the right to mount";
  }
  EXPECT_EQ(record({"sleep", "600"}, {"-g", "-F", "5000", "-o", data()}), kFailure);
  EXPECT_THAT(errors(), HasSubstr("no space left"));
  ::umount(directory_.path().c_str());
}

TEST_F(RecordTest, MeasuresStacksOnlyIfTheyAreToBeCopied) {
  detector_.frame_pointers = false;
  detector_.version.minor = 13;
  // Records into a pipe, so that no stack can be completed: copies are all that remains.
  const base::UniqueFd output{::dup(STDOUT_FILENO)};
  const base::UniqueFd null{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  ASSERT_EQ(::dup2(null.get(), STDOUT_FILENO), STDOUT_FILENO);
  const int status = record({"true"}, {"-o", "-"});
  ASSERT_EQ(::dup2(output.get(), STDOUT_FILENO), STDOUT_FILENO);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(injector_.calls.front(), "stack_use " + std::to_string(target_.pid().value()));
  injector_.calls.clear();
  EXPECT_EQ(record({"true"}, {"-g", "-o", data()}), 0);
  EXPECT_EQ(injector_.calls.front(), "activate " + std::to_string(target_.pid().value()));
  if (test::bpf_engine_lacks().empty()) {
    injector_.calls.clear();
    EXPECT_EQ(record({"true"}, {"-o", data()}), 0);
    EXPECT_EQ(injector_.calls.front(), "activate " + std::to_string(target_.pid().value()))
        << "stopped to measure the stacks although a program unwinds them";
  }
}

TEST_F(RecordTest, WholeSystemIsLenient) {
  plan_.targets = System{};
  plan_.strict = false;
  EXPECT_EQ(record({"sleep", "0.1"}), 0);
  EXPECT_EQ(observer_.active, (std::vector<Pid>{target_.pid()}));
}

}  // namespace
}  // namespace pyinject::record
