// perf-pyinject, and at the step that PYINJECT_TEST_FAULT names (base/fault.hpp) it is killed,
// fails, or is stopped by SIGSTOP or SIGTSTP: STEP:kill, STEP:fail, STEP:stop, STEP:tstp;
// STEP.N:... the N-th time that it comes there. From then on
//   EMFILE, ENFILE, ENOMEM, EIO  it opens nothing, with that error
//   EAGAIN                       it starts no thread and no process
//   EFBIG                        it writes no file
#include "base/fault.hpp"
#include "base/text.hpp"
#include "cli/run.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using pyinject::base::Step;

int g_step = 0;
std::atomic<int> g_times{1};
std::string_view g_action;

// From now on CALLS of all threads, and of what they start, fail with ERROR.
void refuse_calls(const std::vector<long>& calls, int error) {
  std::vector<sock_filter> code{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const long call : calls) {
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{.len = static_cast<unsigned short>(code.size()), .filter = code.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
    ::abort();
  }
}

constexpr auto kOpenErrors = std::to_array<std::pair<std::string_view, int>>(
    {{"EMFILE", EMFILE}, {"ENFILE", ENFILE}, {"ENOMEM", ENOMEM}, {"EIO", EIO}});

// False: there is no shortage of that name.
bool make_short(std::string_view what) {
  for (const auto& [name, error] : kOpenErrors) {
    if (what == name) {
      refuse_calls({SYS_open, SYS_openat, SYS_openat2, SYS_pidfd_open}, error);
      return true;
    }
  }
  if (what == "EAGAIN") {
    refuse_calls({SYS_clone, SYS_clone3, SYS_fork, SYS_vfork}, EAGAIN);
    return true;
  }
  if (what == "EFBIG") {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::signal(SIGXFSZ, SIG_IGN);
    return ::setrlimit(RLIMIT_FSIZE, &none) == 0;
  }
  return false;
}

void act(Step step) {
  if (static_cast<int>(step) != g_step || --g_times != 0) {
    return;
  }
  if (g_action == "kill") {
    ::kill(::getpid(), SIGKILL);
    while (true) {
      ::pause();
    }
  }
  if (g_action == "stop" || g_action == "tstp") {
    (void)::raise(g_action == "stop" ? SIGSTOP : SIGTSTP);
    return;
  }
  if (make_short(g_action)) {
    return;
  }
  throw pyinject::base::Error{fmt::format("fault at step {}", g_step)};
}

bool parse(std::string_view text) {
  const auto parts = pyinject::base::split(text, ':');
  constexpr std::array<std::string_view, 10> kActions{
      "kill", "fail", "stop", "tstp", "EMFILE", "ENFILE", "ENOMEM", "EIO", "EAGAIN", "EFBIG"};
  const auto* const action =
      parts.size() != 2 ? kActions.end() : std::ranges::find(kActions, parts[1]);
  if (action == kActions.end()) {
    return false;
  }
  g_action = *action;
  const auto numbers = pyinject::base::split(parts[0], '.');
  const auto step = pyinject::base::parse_number<int>(numbers[0]);
  const auto times = numbers.size() == 2 ? pyinject::base::parse_number<int>(numbers[1]) : 1;
  g_step = step.value_or(0);
  g_times = times.value_or(0);
  return g_step >= 1 && g_step <= static_cast<int>(Step::kLast) && g_times >= 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* const fault = std::getenv("PYINJECT_TEST_FAULT")) {
    if (!parse(fault)) {
      ::write(STDERR_FILENO, "PYINJECT_TEST_FAULT?\n", 21);
      return 2;
    }
    pyinject::base::set_fault_handler(act);
  }
  return pyinject::cli::run(argc, argv);
}
