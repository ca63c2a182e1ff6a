#include "rivals.hpp"

#include "pyinject/base/deadline.hpp"
#include "support/python_process.hpp"
#include "support/temp_dir.hpp"
#include "tracee/registers.hpp"
#include "tracee/stopped_process.hpp"
#include "tracee/tracee_memory.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <thread>

#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pyinject::bench {

namespace {

using base::Deadline;
using std::chrono::seconds;

constexpr std::uint64_t kBelowTheStack = 4096;

// A call into a thread at an arbitrary point can wait forever for a lock that the thread itself
// holds. Kills the target then: it belongs to this benchmark.
class Watchdog {
 public:
  explicit Watchdog(base::Pid pid)
      : thread_{[this, pid](const std::stop_token& stop) {
          std::unique_lock lock{mutex_};
          if (!woken_.wait_for(lock, stop, seconds{5}, [&] { return stop.stop_requested(); })) {
            ::kill(pid.value(), SIGKILL);
          }
        }} {}

 private:
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::jthread thread_;
};

// Calls FUNCTION in THREAD, which is stopped, and waits until it returns to address 0, where
// nothing is mapped. Returns its result; nullopt: it did not return.
std::optional<std::uint64_t> call(base::Tid thread, const tracee::TraceeMemory& memory,
                                  const tracee::Registers& from, base::RemoteAddress function,
                                  std::uint64_t argument) {
  auto registers = from;
  registers.general.rsp = ((from.general.rsp - kBelowTheStack) & ~std::uint64_t{15}) - 8;
  registers.general.rip = function.value();
  registers.general.rdi = argument;
  registers.general.rax = 0;
  registers.general.orig_rax = ~0ULL;
  if (!memory.write_value(base::RemoteAddress{registers.general.rsp}, std::uint64_t{0}) ||
      !tracee::write_registers(thread, registers) ||
      ::ptrace(PTRACE_CONT, thread.value(), 0L, 0L) != 0) {
    return std::nullopt;
  }
  int status = 0;
  while (::waitpid(thread.value(), &status, __WALL) == thread.value() && WIFSTOPPED(status)) {
    if (WSTOPSIG(status) == SIGSEGV) {
      const auto after = tracee::read_registers(thread);
      return after && after->general.rip == 0 ? std::optional{after->general.rax} : std::nullopt;
    }
    if (::ptrace(PTRACE_CONT, thread.value(), 0L, 0L) != 0) {
      break;
    }
  }
  return std::nullopt;
}

bool call_all(const python::Target& target, base::Tid thread, std::string_view code) {
  const tracee::TraceeMemory memory{target.id.pid};
  const auto saved = tracee::read_registers(thread);
  if (!saved) {
    return false;
  }
  const base::RemoteAddress text{saved->general.rsp - kBelowTheStack / 2};
  const std::string terminated{code};
  if (!memory.write(text, std::as_bytes(std::span{terminated.c_str(), terminated.size() + 1}))) {
    return false;
  }
  const auto& at = target.addresses;
  const auto gil = call(thread, memory, *saved, at.gilstate_ensure, 0);
  return gil && call(thread, memory, *saved, at.run_simple_string, text.value()) &&
         call(thread, memory, *saved, at.gilstate_release, *gil) &&
         tracee::write_registers(thread, *saved);
}

}  // namespace

std::optional<nanoseconds> call_like_a_debugger(const python::Target& target,
                                                std::string_view code) {
  std::optional<nanoseconds> result;
  tracee::on_tracer_thread([&] {
    auto stopped = tracee::StoppedProcess::stop(target.id, Deadline::after(seconds{5}));
    if (auto* process = std::get_if<tracee::StoppedProcess>(&stopped)) {
      const Watchdog watchdog{target.id.pid};
      const bool done = call_all(target, process->threads().front().tid, code);
      const auto span = process->release();
      result = done ? std::optional{span} : std::nullopt;
    }
  });
  return result;
}

bool call_by_gdb(base::Pid pid, std::string_view code) {
  std::string text;
  for (const char c : code) {
    text += c == '\n' ? std::string{"\\n"} : std::string(1, c);
  }
  const auto result = test::run(
      {"gdb", "-nx", "-q", "-batch", "-iex", "set auto-load off", "-iex",
       "set debuginfod enabled off", "-p", std::to_string(pid.value()), "-ex",
       "set $gil = ((int (*)(void)) PyGILState_Ensure)()", "-ex",
       fmt::format(R"(print "ran", ((int (*)(const char*)) PyRun_SimpleString)("{}"))", text),
       "-ex", "call ((void (*)(int)) PyGILState_Release)($gil)"},
      {.child = {}, .input = "", .deadline = seconds{60}});
  return result.out.find("= 0") != std::string::npos;
}

struct RemoteExec::State {
  explicit State(const test::Interpreter& python)
      : process{python, R"(
import os, sys, time
print('ready', flush=True)
for line in sys.stdin:
    pid, script, done = line.split()
    try:
        sys.remote_exec(int(pid), script)
        end = time.monotonic() + 10
        while not os.path.exists(done) and time.monotonic() < end:
            time.sleep(0.00005)
        print('ran' if os.path.exists(done) else 'has not run', flush=True)
    except BaseException as error:
        print(repr(error), flush=True)
)"} {}
  test::TempDir folder;
  test::PythonProcess process;
};

RemoteExec::RemoteExec(const test::Interpreter& python) : state_{std::make_unique<State>(python)} {}
RemoteExec::~RemoteExec() = default;

bool RemoteExec::run(base::Pid pid, std::string_view code) {
  const std::string done = state_->folder / "done";
  std::filesystem::remove(done);
  const auto script =
      state_->folder.file("script.py", fmt::format("{}\nopen('{}', 'w').close()\n", code, done));
  state_->process.send_line(fmt::format("{} {} {}", pid.value(), script, done));
  const auto answer = state_->process.read_line(seconds{20});
  if (answer != "ran") {
    say_missing("sys.remote_exec", answer);
  }
  return answer == "ran";
}

struct BlockingSampler::State {
  test::TempDir folder;
  std::unique_ptr<test::ChildProcess> child;
};

BlockingSampler::BlockingSampler(const test::Interpreter& python, base::Pid pid)
    : state_{std::make_unique<State>()} {
  auto argv = python.command;
  argv.insert(argv.end(),
              {"-m", "profiling.sampling", "attach", "--blocking", "-r", "1khz", "-d", "600",
               "--collapsed", "-o", state_->folder / "out", std::to_string(pid.value())});
  state_->child = std::make_unique<test::ChildProcess>(argv);
}
BlockingSampler::~BlockingSampler() = default;

bool BlockingSampler::running() { return state_->child->running(); }

}  // namespace pyinject::bench
