// Measures the cost of the trampoline while it is on, and the cost that remains afterwards.
#include "rivals.hpp"
#include "sections.hpp"
#include "support/attach.hpp"
#include "targets.hpp"

#include <fmt/format.h>

#include <array>

namespace pyinject::bench {

namespace {

constexpr std::array kWorks{"fib", "mixed"};

// One kind of work in two processes. Their windows alternate, so that both see the same machine.
struct Windows {
  Series before;
  Series during;
  Series after;
  Series first_half;  // of the untouched process
  Series meanwhile;
  Series second_half;
};

void run_windows(Worker& touched, Worker& untouched, const std::string& command, std::size_t rounds,
                 Series& one, Series& other) {
  for (std::size_t round = 0; round < rounds; ++round) {
    one.add(touched.ask(command));
    other.add(untouched.ask(command));
  }
}

std::string ratio(const Series& value, const Series& to) {
  return fmt::format("{:.3f}", value.median() / to.median());
}

// The interquartile range relative to the median: the noise of one window.
std::string spread(const Series& series) {
  return fmt::format("{:.1f} %",
                     (series.percentile(75) - series.percentile(25)) / series.median() * 100);
}

void speeds_of(Table& table, const Effort& effort, const test::Interpreter& python) {
  for (const std::string work : kWorks) {
    test::Attach attach;
    Worker touched{python};
    Worker untouched{python};
    const auto command =
        fmt::format("{} {}", work, static_cast<double>(effort.window.count()) / 1000);
    Windows windows;
    run_windows(touched, untouched, command, effort.rounds, windows.before, windows.first_half);
    attach.activate(touched.pid());
    run_windows(touched, untouched, command, effort.rounds, windows.during, windows.meanwhile);
    attach.deactivate(touched.pid());
    run_windows(touched, untouched, command, effort.rounds, windows.after, windows.second_half);
    table.row({version(python), work, std::to_string(windows.after.count()),
               ratio(windows.during, windows.before), ratio(windows.after, windows.before),
               ratio(windows.second_half, windows.first_half), spread(windows.first_half)});
  }
}

}  // namespace

void speeds(const Effort& effort) {
  Table table{
      "Speed of a program before, while it is on and after",
      fmt::format("Rounds per second of CPU time in windows of {} ms, medians; 1.000: as before. "
                  "Untouched: the second half of an untouched process divided by its first half, "
                  "in windows that take turns with the others. Noise: the middle half of such "
                  "windows. fib: nothing but calls; mixed: JSON.",
                  effort.window.count()),
      {"CPython", "program", "n", "on / before", "after / before", "untouched", "noise"}};
  for (const auto& python : interpreters(effort)) {
    speeds_of(table, effort, python);
  }
}

void calls(const Effort& effort) {
  constexpr int kCalls = 300'000;
  constexpr int kFunctions = 1000;
  Table table{
      "What the trampoline costs a call",
      "Nanoseconds, medians. A call of an empty function, and the first call of a function, "
      "which is when its trampoline and its line in the map are written.",
      {"CPython", "n", "call, before", "on", "after", "first call, before", "on", "after"}};
  for (const auto& python : interpreters(effort)) {
    test::Attach attach;
    Worker worker{python};
    std::array<Series, 3> call;
    std::array<Series, 3> first;
    const auto measure = [&](std::size_t when) {
      call.at(when).add(worker.ask(fmt::format("call {}", kCalls)));
      first.at(when).add(worker.ask(fmt::format("first {}", kFunctions)));
    };
    for (std::size_t round = 0; round < effort.rounds; ++round) {
      measure(0);
    }
    for (std::size_t round = 0; round < effort.rounds; ++round) {
      attach.activate(worker.pid());
      measure(1);
      attach.deactivate(worker.pid());
      measure(2);
    }
    std::vector<std::string> cells{version(python), std::to_string(call[0].count())};
    for (const auto* kind : {&call, &first}) {
      for (const auto& series : *kind) {
        cells.push_back(fmt::format("{:.0f}", series.median()));
      }
    }
    table.row(cells);
  }
}

}  // namespace pyinject::bench
