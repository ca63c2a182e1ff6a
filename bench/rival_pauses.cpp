// Switches trampolines by this tool and by others in turns, each in a process of its own.
#include "pyinject/base/error.hpp"
#include "rivals.hpp"
#include "sections.hpp"
#include "support/attach.hpp"
#include "targets.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace pyinject::bench {

namespace {

constexpr std::chrono::milliseconds kWindow{5};  // in which no tool does anything

struct Step {
  Series stopped{};
  Series gap{};
};

struct Way {
  std::string name;
  std::size_t runs = 0;
  bool says_stop = false;
  // Switches on or off. nullopt: the target did not survive.
  std::function<std::optional<nanoseconds>(base::Pid, bool)> change;
  Step on{};
  Step off{};
  std::size_t failed = 0;
};

bool run_step(Watched& target, const Way& way, bool on, Step& step) {
  std::optional<nanoseconds> stopped;
  const auto seen = watch(target, [&] { stopped = way.change(target.pid(), on); });
  if (stopped) {
    step.stopped.add(*stopped);
    step.gap.add(seen.gap);
  }
  return stopped.has_value();
}

void run_once(const test::Interpreter& python, Way& way) {
  try {
    Watched target{python, Kind::kBusy, 1};
    if (!run_step(target, way, true, way.on) || !run_step(target, way, false, way.off)) {
      ++way.failed;
    }
  } catch (const base::Error&) {
    ++way.failed;  // the target no longer answers
  }
}

std::optional<nanoseconds> none_unless(bool done) {
  return done ? std::optional{nanoseconds{}} : std::nullopt;
}

std::string_view code(bool on) { return on ? kActivation : kDeactivation; }

std::vector<Way> ways(const Effort& effort, test::Attach& attach, RemoteExec* remote) {
  std::vector<Way> result;
  const auto add = [&result](const std::string& name, std::size_t runs, bool says_stop,
                             std::function<std::optional<nanoseconds>(base::Pid, bool)> change) {
    result.push_back(
        {.name = name, .runs = runs, .says_stop = says_stop, .change = std::move(change)});
  };
  add("perf-pyinject", effort.runs, true, [&](base::Pid pid, bool on) {
    return std::optional{on ? attach.activate(pid).stopped : attach.deactivate(pid).stopped};
  });
  add("calls as a debugger makes them", effort.runs, true,
      [&](base::Pid pid, bool on) { return call_like_a_debugger(attach.detect(pid), code(on)); });
  if (remote != nullptr) {
    add("sys.remote_exec", effort.runs, false,
        [=](base::Pid pid, bool on) { return none_unless(remote->run(pid, code(on))); });
  }
  add("gdb", effort.slow_runs, false,
      [](base::Pid pid, bool on) { return none_unless(call_by_gdb(pid, code(on))); });
  add("untouched", effort.runs, false, [](base::Pid, bool) {
    wait_for(kWindow);
    return std::optional{nanoseconds{}};
  });
  return result;
}

// The largest gaps of windows in which the target is sampled.
std::optional<Series> sampled(const test::Interpreter& python, const Effort& effort) {
  Watched target{python, Kind::kBusy, 1};
  BlockingSampler sampler{python, target.pid()};
  wait_for(std::chrono::seconds{2});  // until it samples
  Series gap;
  for (std::size_t run = 0; run < effort.runs; ++run) {
    gap.add(watch(target, [] { wait_for(kWindow); }).gap);
  }
  return sampler.running() ? std::optional{gap} : std::nullopt;
}

std::string ratio(const Step& ours, const Step& others) {
  return fmt::format("{:.2f}", ours.gap.median() / others.gap.median());
}

void rivals_of(Table& table, const Effort& effort, const test::Interpreter& python) {
  test::Attach attach;
  const auto remote = python.minor >= 14 ? std::make_unique<RemoteExec>(python) : nullptr;
  auto all = ways(effort, attach, remote.get());
  for (std::size_t run = 0; run < effort.runs; ++run) {
    for (auto& way : all) {
      if (run < way.runs) {
        run_once(python, way);
      }
    }
  }
  const auto& ours = all.front();
  for (const auto& way : all) {
    if (way.off.gap.count() == 0) {
      say_missing(fmt::format("{} on {}", way.name, version(python)), "it worked never");
      continue;
    }
    table.row({version(python), way.name, std::to_string(way.on.gap.count()),
               std::to_string(way.failed), way.says_stop ? way.on.stopped.text() : "-",
               way.on.gap.text(), ratio(ours.on, way.on),
               way.says_stop ? way.off.stopped.text() : "-", way.off.gap.text(),
               ratio(ours.off, way.off)});
  }
  if (ours.failed != 0) {
    throw base::Error{"perf-pyinject failed with " + python.name};
  }
  if (python.minor < 15) {
    return;
  }
  if (const auto gap = sampled(python, effort)) {
    table.row({version(python), "profiling.sampling attach --blocking, 1 kHz",
               std::to_string(gap->count()), "0", "-", gap->text(), "-", "-", "-", "-"});
  } else {
    say_missing("profiling.sampling", "it has ended");
  }
}

}  // namespace

void rivals(const Effort& effort) {
  Table table{
      "The same by other tools",
      "A busy program with one thread is switched on for the first time and off, each process "
      "once, "
      "by all in turns. Microseconds: median / 99 % / greatest. Failed: the program ended, hung or "
      "was not switched. Ours/this: our median gap by this one's. Most of the gap of a first "
      "activation is CPython's own work, whoever asks for it: it makes a file and 64 KiB of code. "
      "Others have Python code run each time, ours stores one word from then on. \"Calls as a "
      "debugger makes them\" is written for this comparison: PyGILState_Ensure, "
      "PyRun_SimpleString and PyGILState_Release called inside of the stop.",
      {"CPython", "by", "n", "failed", "on: stop", "on: gap", "ours/this", "off: stop", "off: gap",
       "ours/this"}};
  for (const auto& python : interpreters(effort)) {
    rivals_of(table, effort, python);
  }
}

}  // namespace pyinject::bench
