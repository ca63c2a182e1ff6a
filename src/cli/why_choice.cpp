#include "cli/why_choice.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/cpu_meter.hpp"
#include "cli/verb_options.hpp"
#include "procfs/cmdline.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "targets/examine_all.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

namespace pyinject::cli {

namespace {

std::vector<base::Pid> selected(const WhyCommand& command) {
  if (command.children) {
    return targets::TargetSet::of_families(command.pids).choose(targets::visible_processes());
  }
  if (!command.pids.empty()) {
    return targets::without_repetitions(command.pids);
  }
  auto pids = targets::visible_processes();
  std::erase_if(pids, [&](base::Pid pid) { return !targets::is_in(command.scope, pid); });
  return pids;
}

}  // namespace

std::optional<ChosenProcess> choose_process(const WhyCommand& command, python::Detector& detector,
                                            base::Logger& logger) {
  const CpuMeter meter;
  const auto pids = selected(command);
  const auto examined = targets::examine_all(
      detector, pids, base::Cancellation::never(),
      command.pids.empty() ? targets::kPatienceUnnamed : targets::kPatienceNamed);
  std::vector<const python::Target*> pythons;
  std::map<base::Pid, std::string> refused;
  for (std::size_t i = 0; i < pids.size(); ++i) {
    if (const auto* const target = std::get_if<python::Target>(&examined[i].detection)) {
      pythons.push_back(target);
    } else {
      const auto& refusal = std::get<python::Refused>(examined[i].detection).refusal;
      refused.emplace(pids[i], base::printable(python::describe(refusal)));
    }
  }
  for (const auto pid : targets::without_repetitions(command.pids)) {
    const auto found = refused.find(pid);
    if (found != refused.end() && (pythons.empty() || !command.children)) {
      logger.error("pid {}: {}", pid.value(), found->second);
    }
  }
  if (pythons.empty()) {
    if (command.pids.empty()) {
      logger.error("no Python process {}; perf-pyinject status lists them",
                   missing_text(command.scope));
    }
    return std::nullopt;
  }
  if (pythons.size() == 1) {
    return ChosenProcess{.target = *pythons.front(), .considered = {}};
  }
  const auto shares = meter.shares();
  const auto share_of = [&shares](const python::Target* target) {
    const auto found = shares.find(target->id.pid);
    return found == shares.end() ? 0 : found->second;
  };
  std::ranges::stable_sort(pythons, std::ranges::greater{}, share_of);
  ChosenProcess chosen{.target = *pythons.front(), .considered = {}};
  for (const auto* const target : pythons) {
    chosen.considered.push_back({.pid = target->id.pid.value(),
                                 .command = procfs::read_command(target->id.pid),
                                 .cpu = share_of(target)});
  }
  return chosen;
}

}  // namespace pyinject::cli
