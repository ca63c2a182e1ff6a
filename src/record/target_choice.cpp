#include "record/target_choice.hpp"

#include "base/format.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "record/call_graph.hpp"
#include "targets/examine_all.hpp"
#include "targets/pid_list.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace pyinject::record {

namespace {

// For descendants of a refused process: the search for Pythons among them must not take long.
constexpr std::size_t kMostDescendants = 200;
constexpr std::chrono::seconds kLookAtDescendants{1};

}  // namespace

// COMMAND is the target: hold it until perf's events are enabled.
void TargetChoice::hold_command() {
  const auto environment = engine_.environment_of_command();
  workload_.hold(interruption_.requests().ignored_before(), environment);
  const auto pid = workload_.process()->pid();
  engine_.command_held(pid);
  const bool family = engine_.takes_launched_late();
  if (family) {
    watch_ = watch::watch_processes(logger_);
  }
  roster_.add_command(pid, family);
}

bool TargetChoice::choose() {
  if (plan_.launches()) {
    hold_command();
    return true;
  }
  if (plan_.whole_system() ||
      plan_.families()) {  // before the first scan, so that no process is missed
    targets::raise_descriptor_limit();
    watch_ = watch::watch_processes(logger_);
  }
  const bool named = !plan_.whole_system();
  roster_.choose();
  auto selection = plan_.families() ? choose_families() : manager_.select(roster_.chosen(), named);
  if (interruption_.cancellation().cancelled()) {
    return false;
  }
  if (named && !plan_.families()) {
    name_python_descendants(selection.no_pythons);
    name_python_descendants(selection.uninitialized);
  }
  if (plan_.strict && named && !selection.complete) {
    return false;
  }
  if (named) {
    roster_.tell_perf_of_chosen();  // lenient: also processes without names, if they exist
  }
  if (selection.targets.empty()) {
    if (named && (!plan_.families() || roster_.for_perf().empty())) {
      logger_.error("no process can be activated");
      return false;
    }
    logger_.log(
        base::LogLevel::kWarning,
        named ? fmt::format("no Python process below {} yet: those that start will be recorded",
                            targets::list_pids(plan_.pids()))
              : "no Python process that can be activated is visible");
  }
  targets_ = std::move(selection.targets);
  roster_.set_no_pythons(std::move(selection.no_pythons));
  if (!watch_ && std::ranges::any_of(targets_, &python::Target::foreign_namespace)) {
    watch_ = watch::watch_processes(logger_);  // to copy maps of their children in time
  }
  return true;
}

// A shell, `uv run`, an init process of a container, apache with mod_wsgi: the user means the
// Pythons below it.
void TargetChoice::name_python_descendants(const std::set<base::Pid>& roots) {
  for (const auto root : roots) {
    auto pids = targets::TargetSet::of_families({root}).choose(targets::visible_processes());
    std::erase(pids, root);
    pids.resize(std::min(pids.size(), kMostDescendants));
    const auto examined = targets::examine_all(engine_.detector(), pids,
                                               interruption_.cancellation(), kLookAtDescendants);
    std::vector<base::Pid> pythons;
    for (std::size_t i = 0; i < pids.size(); ++i) {
      if (std::holds_alternative<python::Target>(examined[i].detection)) {
        pythons.push_back(pids[i]);
      }
    }
    if (!pythons.empty()) {
      logger_.log(plan_.strict ? base::LogLevel::kError : base::LogLevel::kWarning,
                  fmt::format("pid {} has Python descendants ({}): add --children to record them",
                              root.value(), targets::list_pids(pythons)));
    }
  }
}

// The given processes and all their descendants; none of them has to be a Python.
targets::Selection TargetChoice::choose_families() {
  const auto roots = targets::without_repetitions(plan_.pids());
  auto selection = manager_.select(roots);
  auto others = manager_.select(roster_.add_roots(roots), false);
  std::ranges::move(others.targets, std::back_inserter(selection.targets));
  selection.no_pythons.merge(others.no_pythons);
  return selection;
}

void TargetChoice::add_options() {
  if (!plan_.perf_options->clock) {
    options_ = {"-k", "mono"};
  }
  if (plan_.perf_options->per_thread) {
    options_.emplace_back("--timestamp");
  }
  if (plan_.flags.off_cpu) {
    // Each switch of a thread is a sample; the switch records tell when it ran again.
    if (!plan_.perf_options->event) {
      options_.insert(options_.end(), {"-e", "cycles"});
    }
    options_.insert(options_.end(), {"-e", "context-switches/period=1/", "--switch-events"});
  }
}

void TargetChoice::choose_call_graph() {
  add_options();
  if (targets_.empty() && !plan_.expects_more()) {
    return;
  }
  const CallGraphWishes wishes{
      .chosen = plan_.perf_options->call_graph,
      .frequency_chosen = plan_.perf_options->rate,
      .frequency = plan_.perf_options->frequency,
      .most_entries = most_callchain_entries(),
      .buffer_bytes = plan_.perf_options->buffers ? 0 : affordable_buffer(),
      .others = plan_.expects_more() || targets_.size() < plan_.pids().size(),
      .all = plan_.whole_system(),
      .recorded = roster_.chosen()};
  const auto choice = engine_.choose_call_graph(targets_, wishes, interruption_.cancellation());
  options_.insert(options_.end(), choice.arguments.begin(), choice.arguments.end());
  if (!choice.note.empty()) {
    logger_.log(choice.complete ? base::LogLevel::kInfo : base::LogLevel::kWarning, choice.note);
  }
}

}  // namespace pyinject::record
