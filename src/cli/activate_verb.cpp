#include "base/format.hpp"
#include "cli/command_line.hpp"
#include "cli/reporter.hpp"
#include "cli/summary_lines.hpp"
#include "cli/verb_options.hpp"
#include "cli/verbs.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/targets/guard.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/target_selection.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace pyinject::cli {

namespace {

constexpr auto kActivateOptions = std::to_array<Option>({
    rows::kPid.with("the targets"),
    {"--strict", "if one fails, switch the others off again (default)"},
    {"--lenient", "skip targets that fail"},
    rows::kDeactivateTimeout.with("limit for undoing a failure (default: 5)"),
    rows::kStats,
});

constexpr std::string_view kActivateHelp =
    R"(usage: perf-pyinject activate PID[,PID...] [OPTION...]

Switches CPython's perf trampoline on in the targets and leaves it on, for a
perf that you run yourself. Programs that mostly call functions run at about
half their speed until it is switched off.

{options}

example, for an interpreter with frame pointers:
  perf-pyinject activate -p 4711 && perf top -g -p 4711
)";

void parse_activate(const VerbArguments& arguments, CommandLine& line) {
  auto parsed = parse_words(activate_verb, arguments, Operands::kTargets, line);
  if (line.help) {
    return;
  }
  require_pids(activate_verb, parsed);
  line.options = ActivateCommand{.pids = std::move(parsed.pids),
                                 .strict = parsed.strict,
                                 .deactivation_deadline = parsed.deactivation_deadline};
}

int run_activate(const CommandLine& line, Reporter& reporter, const Terminal& /*terminal*/) {
  const auto& command = std::get<ActivateCommand>(line.options);
  auto& logger = reporter.logger();
  const auto detector = python::make_detector();
  const auto injector = python::make_injector();
  targets::Guard guard{*detector, *injector, logger, {.session = base::ProcessId{}}};
  targets::ManagerOptions options{.strict = command.strict,
                                  .deactivation_deadline = command.deactivation_deadline};
  options.before_activation = [&](const auto& target) {
    if (target.state == python::TrampolineState::kOff) {
      guard.watch(target);
    }
  };
  options.on_event = [&](const auto& event) { reporter.note(event); };
  const auto manager = targets::make_manager(*detector, *injector, logger, options);
  manager->on_activation(
      [&](const targets::ActiveTarget& active) { logger.info("{}", activation_line(active)); });
  auto selection = manager->select(targets::without_repetitions(command.pids));
  if (command.strict && !selection.complete) {
    reporter.add(manager->stats());
    return record::kFailure;
  }
  guard.expect_stops();  // including targets that are already on
  const bool done = manager->activate_all(std::move(selection.targets));
  reporter.add(manager->stats());
  guard.dismiss();
  return done && !manager->active().empty() ? 0 : record::kFailure;
}

}  // namespace

const VerbSpec activate_verb{.name = "activate",
                             .summary = "switch CPython's perf trampoline on and leave it on",
                             .options = kActivateOptions,
                             .parse = parse_activate,
                             .run = run_activate,
                             .help = kActivateHelp,
                             .operands = Completed::kPids};

}  // namespace pyinject::cli
