#include "base/format.hpp"
#include "cli/command_line.hpp"
#include "cli/reporter.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/targets/guard.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "targets/abandoned.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::cli {

namespace {

constexpr auto kDeactivateOptions = std::to_array<Option>({
    rows::kPid.with("the targets"),
    {"--abandoned",
     "all trampolines that a killed perf-pyinject left on; not those that activate switched on"},
    rows::kDeactivateTimeout,
    rows::kStats,
});

constexpr std::string_view kDeactivateHelp =
    R"(usage: perf-pyinject deactivate (PID[,PID...] | --abandoned) [OPTION...]

Switches off trampolines that perf-pyinject has switched on. Trampolines that a
program has switched on itself (python -X perf, or its own call) stay on.

{options}

example:
  perf-pyinject deactivate -p 4711
)";

void parse_deactivate(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(deactivate_verb, arguments, Operands::kTargets, line);
  if (line.help) {
    return;
  }
  const bool abandoned = parsed.has("abandoned");
  if (!abandoned) {
    require_pids(deactivate_verb, parsed);
  } else if (!parsed.pids.empty()) {
    throw CommandLineError{"--abandoned finds its targets itself: omit -p", record::kUsage};
  }
  line.options = DeactivateCommand{.pids = std::move(parsed.pids),
                                   .abandoned = abandoned,
                                   .deactivation_deadline = parsed.deactivation_deadline};
}

int run_deactivate(const CommandLine& line, Reporter& reporter, const Terminal& /*terminal*/) {
  const auto& command = std::get<DeactivateCommand>(line.options);
  auto& logger = reporter.logger();
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  targets::Guard guard{*detector, *injector, logger, {}};
  targets::ManagerOptions options{.deactivation_deadline = command.deactivation_deadline};
  bool left_on = false;  // excluding targets that a running session will switch off itself
  options.on_event = [&](const targets::Event& event) {
    left_on = left_on || (event.kind == targets::EventKind::kFailed &&
                          event.reason != python::Reason::kOtherSession);
    reporter.note(event);
  };
  const auto manager = targets::make_manager(*detector, *injector, logger, options);
  targets::Selection selection;
  if (command.abandoned) {
    selection.targets = targets::abandoned_targets(*detector, logger);
  } else {
    selection = manager->select(targets::without_repetitions(command.pids));
  }
  std::vector<python::Target> on;
  for (auto& target : selection.targets) {
    const auto pid = target.id.pid.value();
    if (target.state == python::TrampolineState::kOnByUs) {
      guard.watch(target);
      on.push_back(std::move(target));
    } else if (target.state == python::TrampolineState::kOff) {
      logger.info("pid {}: trampoline was already off", pid);
    } else {
      logger.warning("pid {}: trampoline was switched on by the program itself; left on", pid);
    }
  }
  const bool all_off = manager->deactivate_all(on);
  reporter.add(manager->stats());
  if (!left_on) {
    guard.dismiss();
  }
  if (all_off) {
    for (const auto& target : on) {
      logger.info("pid {}: trampoline off", target.id.pid.value());
    }
  }
  return all_off && selection.complete ? 0 : record::kFailure;
}

}  // namespace

const VerbSpec deactivate_verb{.name = "deactivate",
                               .summary = "switch the trampoline off",
                               .options = kDeactivateOptions,
                               .parse = parse_deactivate,
                               .run = run_deactivate,
                               .help = kDeactivateHelp,
                               .operands = Completed::kPids};

}  // namespace pyinject::cli
