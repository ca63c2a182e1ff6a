// Measures how long the tool stops a target.
#include "sections.hpp"
#include "support/attach.hpp"
#include "targets.hpp"

#include <fmt/format.h>

namespace pyinject::bench {

namespace {

// The results of one kind of step on one kind of target.
struct Steps {
  Series stopped;
  Series gap;
  Series untouched;
};

// An idle target sees no gap, and threads that compete for the GIL mostly see each other.
bool sees_gaps(Kind kind, int threads) {
  return kind == Kind::kMixed || (kind == Kind::kBusy && threads == 1);
}

void measure(Watched& target, bool gaps, Steps& steps, const std::function<nanoseconds()>& step) {
  if (!gaps) {
    steps.stopped.add(step());
    return;
  }
  nanoseconds stopped{};
  const auto seen = watch(target, [&] { stopped = step(); });
  steps.stopped.add(stopped);
  steps.gap.add(seen.gap);
  steps.untouched.add(seen.untouched_gap);
}

void print(Table& table, const std::string& python, const std::string& target,
           const std::string& step, const Steps& steps, bool gaps) {
  table.row({python, target, step, std::to_string(steps.stopped.count()), steps.stopped.text(),
             gaps ? steps.gap.text() : "-", gaps ? steps.untouched.text() : "-"});
}

void pauses_of(Table& table, const Effort& effort, const test::Interpreter& python, Kind kind,
               int threads) {
  const bool gaps = sees_gaps(kind, threads);
  const auto who =
      fmt::format("{}, {} {}", name(kind), threads, threads == 1 ? "thread" : "threads");
  test::Attach attach;
  Steps first;
  for (std::size_t run = 0; run < effort.runs; ++run) {
    Watched target{python, kind, threads};
    measure(target, gaps, first, [&] { return attach.activate(target.pid()).stopped; });
    target.check();
  }
  print(table, version(python), who, "first activation", first, gaps);

  Watched target{python, kind, threads};
  attach.activate(target.pid());
  Steps toggle;
  for (std::size_t run = 0; run < effort.runs; ++run) {
    measure(target, gaps, toggle, [&] { return attach.deactivate(target.pid()).stopped; });
    measure(target, gaps, toggle, [&] { return attach.activate(target.pid()).stopped; });
  }
  target.check();
  print(table, version(python), who, "off, on again", toggle, gaps);
}

}  // namespace

void pauses(const Effort& effort) {
  Table table{
      "How long a target is stopped",
      "Microseconds: median / 99 % / greatest. Stop: from the first interrupt to the detach of the "
      "last thread, as `record` prints it. Gap: the longest time between two looks at the clock "
      "that the target's main thread saw in a window around the step; untouched: in a window of "
      "the same length in which nothing was done. Busy: all threads run Python; mixed: the main "
      "thread does, the others wait; idle: all wait. Unless it competes for the GIL, the main "
      "thread has a processor of its own. A first activation has a process of its own.",
      {"CPython", "target", "step", "n", "stop", "gap", "gap, untouched"}};
  for (const auto& python : interpreters(effort)) {
    for (const int threads : effort.threads) {
      pauses_of(table, effort, python, Kind::kBusy, threads);
      if (threads > 1) {
        pauses_of(table, effort, python, Kind::kMixed, threads);
      }
      pauses_of(table, effort, python, Kind::kIdle, threads);
    }
  }
}

}  // namespace pyinject::bench
