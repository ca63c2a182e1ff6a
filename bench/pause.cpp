// How long a target stands still: bench_pause [RUNS] [PART OF AN INTERPRETER'S NAME]
//
// For each interpreter found: the first activation of RUNS / 10 processes, then RUNS times off and
// on in one process. "stopped" is what the tool itself reports, stop to let-go of the first
// thread. "gap" is the longest time between two looks at the clock that the target's busy main
// thread saw: all that the kernel made of it, with other programs' time, hence also that of a
// window of the same length in which nothing was done.
#include "pyinject/base/text.hpp"
#include "support/attach.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using namespace pyinject;  // NOLINT(google-build-using-namespace): a program's one file
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

// Answers each line with the longest gap since the line before, in nanoseconds.
constexpr const char* kClockWatcher = R"(
import select
import sys
from time import perf_counter_ns as clock
def watch():
    last = clock()
    largest = 0
    for _ in range(2000):
        now = clock()
        if now - last > largest:
            largest = now - last
        last = now
    return largest
largest = watch()
print('ready', flush=True)
while True:
    largest = max(largest, watch())
    if select.select([sys.stdin], [], [], 0)[0]:
        if not sys.stdin.readline():
            break
        print(largest, flush=True)
        largest = 0
)";

class Watched {
 public:
  explicit Watched(const test::Interpreter& python)
      : python_{python}, process_{python, kClockWatcher} {
    (void)gap();
  }
  ~Watched() {
    const std::string map = fmt::format("/tmp/perf-{}.map", process_.pid().value());
    ::unlink(map.c_str());
    if (!python_.root.empty()) {
      ::unlink((python_.root + map).c_str());
    }
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  [[nodiscard]] base::Pid pid() const { return process_.pid(); }
  // The longest since the last call.
  [[nodiscard]] nanoseconds gap() {
    process_.send_line("gap");
    return nanoseconds{base::parse_number<long>(process_.read_line()).value_or(0)};
  }
  // The longest in a window in which nothing happens. It says nothing by itself: a wait.
  [[nodiscard]] nanoseconds quiet_gap(nanoseconds window) {
    (void)gap();
    (void)process_.child().read_line(base::Deadline::after(window));
    return gap();
  }

 private:
  test::Interpreter python_;
  test::PythonProcess process_;
};

// What was measured in one kind of step.
struct Series {
  std::vector<nanoseconds> stopped;
  nanoseconds gap{};
  nanoseconds quiet{};
};

double microseconds(nanoseconds span) { return static_cast<double>(span.count()) / 1000; }

double percentile(std::vector<nanoseconds> spans, std::size_t percent) {
  std::ranges::sort(spans);
  return microseconds(spans.at(std::min(spans.size() - 1, spans.size() * percent / 100)));
}

void print_row(const std::string& interpreter, const std::string& step, const Series& series) {
  fmt::print("{:<22} {:<9} {:>5} {:>8.0f} {:>8.0f} {:>8.0f} {:>10.0f} {:>10.0f}\n", interpreter,
             step, series.stopped.size(), percentile(series.stopped, 50),
             percentile(series.stopped, 90), percentile(series.stopped, 99),
             microseconds(series.gap), microseconds(series.quiet));
  (void)std::fflush(stdout);
}

void measure(const test::Interpreter& python, std::size_t runs) {
  test::Attach attach;
  Series first;
  for (std::size_t run = 0; run < std::max<std::size_t>(runs / 10, 1); ++run) {
    Watched target{python};
    const auto begin = Clock::now();
    first.stopped.push_back(attach.activate(target.pid()).stopped);
    const auto window = Clock::now() - begin;
    first.gap = std::max(first.gap, target.gap());
    attach.deactivate(target.pid());
    first.quiet = std::max(first.quiet, target.quiet_gap(window));
  }
  print_row(python.name, "first on", first);

  Watched target{python};
  attach.activate(target.pid());
  (void)target.gap();
  const auto begin = Clock::now();
  Series off;
  Series on;
  for (std::size_t run = 0; run < runs; ++run) {
    off.stopped.push_back(attach.deactivate(target.pid()).stopped);
    off.gap = std::max(off.gap, target.gap());
    on.stopped.push_back(attach.activate(target.pid()).stopped);
    on.gap = std::max(on.gap, target.gap());
  }
  off.quiet = on.quiet = target.quiet_gap(Clock::now() - begin);
  print_row(python.name, "off", off);
  print_row(python.name, "on again", on);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments{argv + 1, argv + argc};
    const std::optional<std::size_t> runs =
        arguments.empty() ? 200 : base::parse_number<std::size_t>(arguments[0]);
    if (runs.value_or(0) == 0 || arguments.size() > 2) {
      fmt::print(stderr, "usage: bench_pause [RUNS] [PART OF AN INTERPRETER'S NAME]\n");
      return 2;
    }
    fmt::print("{:<22} {:<9} {:>5} {:>26} {:>21}\n", "", "", "", "stopped, us", "largest gap, us");
    fmt::print("{:<22} {:<9} {:>5} {:>8} {:>8} {:>8} {:>10} {:>10}\n", "interpreter", "step",
               "runs", "p50", "p90", "p99", "then", "otherwise");
    for (const auto& python : test::find_interpreters()) {
      if (arguments.size() < 2 || python.name.find(arguments[1]) != std::string::npos) {
        measure(python, *runs);
      }
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_pause: {}\n", error.what());
    return 1;
  }
}
