// perf-pyinject, and at the step that PYINJECT_TEST_FAULT names (base/fault.hpp) it is killed or
// fails: STEP:kill, STEP:fail; STEP.N:... the N-th time that it comes there.
#include "pyinject/base/error.hpp"
#include "pyinject/base/fault.hpp"
#include "pyinject/base/text.hpp"
#include "pyinject/cli/run.hpp"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace {

using pyinject::base::Step;

int g_step = 0;
std::atomic<int> g_times{1};
bool g_kill = false;

void act(Step step) {
  if (static_cast<int>(step) != g_step || --g_times != 0) {
    return;
  }
  if (g_kill) {
    ::kill(::getpid(), SIGKILL);
    while (true) {
      ::pause();
    }
  }
  throw pyinject::base::Error{fmt::format("fault at step {}", g_step)};
}

bool parse(std::string_view text) {
  const auto parts = pyinject::base::split(text, ':');
  if (parts.size() != 2 || (parts[1] != "kill" && parts[1] != "fail")) {
    return false;
  }
  g_kill = parts[1] == "kill";
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
