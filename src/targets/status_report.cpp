#include "pyinject/targets/status_report.hpp"

#include "base/text.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "targets/examine_all.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

namespace pyinject::session {

namespace {

using nlohmann::ordered_json;

// Is this a process that a list of Python processes has to show?
bool is_python(const ProcessStatus& status) {
  return !status.refusal || status.version || !status.interpreter.empty();
}

ordered_json text_or_null(const std::string& text) {
  ordered_json result;  // null
  if (!text.empty()) {
    result = base::printable(text);
  }
  return result;
}

ordered_json json_of(const ProcessStatus& status) {
  ordered_json one;
  one["pid"] = status.pid.value();
  one["version"] = text_or_null(status.version ? python::to_string(*status.version) : "");
  one["interpreter"] = text_or_null(status.interpreter);
  one["frame_pointers"] = nullptr;
  if (status.frame_pointers) {
    one["frame_pointers"] = *status.frame_pointers;
  }
  one["trampoline"] =
      text_or_null(status.trampoline ? std::string{python::name(*status.trampoline)} : "");
  one["session"] = nullptr;
  if (status.trampoline == python::TrampolineState::kOnByUs) {
    one["session"] = python::name(status.owner);
  }
  one["ready"] = !status.refusal.has_value();
  one["reason"] = nullptr;
  one["found"] = nullptr;
  one["remedy"] = nullptr;
  if (status.refusal) {
    one["reason"] = python::name(status.refusal->reason);
    one["found"] = base::printable(status.refusal->found);
    one["remedy"] = base::printable(status.refusal->remedy);
  }
  one["warnings"] = ordered_json::array();
  for (const auto& warning : status.warnings) {
    one["warnings"].push_back(base::printable(warning));
  }
  return one;
}

std::string owner_explanation(const ProcessStatus& status) {
  const auto pid = status.pid.value();
  if (status.owner == python::OwnerState::kGone) {
    return fmt::format(
        "pid {}: the perf-pyinject that switched its trampoline on was killed: perf-pyinject "
        "deactivate -p {}, or --abandoned for all such processes\n",
        pid, pid);
  }
  if (status.owner == python::OwnerState::kUnknown) {
    return fmt::format(
        "pid {}: cannot tell whether the perf-pyinject that switched its trampoline on still runs: "
        "it was in another pid namespace\n",
        pid);
  }
  return {};
}

}  // namespace

ProcessStatus status_of(base::Pid pid, const python::Detection& detection) {
  ProcessStatus status;
  status.pid = pid;
  if (const auto* target = std::get_if<python::Target>(&detection)) {
    status.version = target->version;
    status.interpreter = target->interpreter;
    status.frame_pointers = target->frame_pointers;
    status.trampoline = target->state;
    status.owner = python::owner_state(*target);
    status.warnings = target->warnings;
    return status;
  }
  const auto& refused = std::get<python::Refused>(detection);
  if (refused.version != python::Version{}) {
    status.version = refused.version;
  }
  status.interpreter = refused.interpreter;
  status.frame_pointers = refused.frame_pointers;
  status.refusal = refused.refusal;
  return status;
}

StatusReport report_status(python::Detector& detector, const std::vector<base::Pid>& pids) {
  StatusReport report;
  const auto all = pids.empty() ? visible_processes() : without_repetitions(pids);
  const auto examined = examine_all(detector, all, base::Cancellation::never(),
                                    pids.empty() ? kPatienceUnnamed : kPatienceNamed);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto status = status_of(all[i], examined[i].detection);
    if (!pids.empty() || is_python(status)) {
      report.processes.push_back(std::move(status));
    } else if (status.refusal->reason == python::Reason::kNoPermission) {
      ++report.unreadable;
    } else if (status.refusal->reason == python::Reason::kNotExamined) {
      ++report.not_examined;
    }
  }
  return report;
}

std::string verdict(const ProcessStatus& status) {
  if (status.refusal) {
    return std::string{python::name(status.refusal->reason)};
  }
  if (status.trampoline.value_or(python::TrampolineState::kOff) == python::TrampolineState::kOff) {
    return "ready";
  }
  const bool gone = status.owner == python::OwnerState::kGone;
  return fmt::format("{}{}", python::name(*status.trampoline), gone ? " (session gone)" : "");
}

std::string to_json(const StatusReport& report) {
  ordered_json all;
  all["schema"] = 1;
  all["processes"] = ordered_json::array();
  for (const auto& status : report.processes) {
    all["processes"].push_back(json_of(status));
  }
  all["unreadable"] = report.unreadable;
  all["not_examined"] = report.not_examined;
  return all.dump(2) + "\n";
}

std::string to_table(const StatusReport& report) {
  std::string text;
  std::string explanations;
  if (!report.processes.empty()) {
    text = fmt::format("{:>8}  {:<10}  {:<4}  {:<23}  {}\n", "PID", "PYTHON", "FP", "STATE",
                       "INTERPRETER");
  }
  for (const auto& status : report.processes) {
    const std::string version = status.version ? python::to_string(*status.version) : "-";
    const char* const pointers =
        status.frame_pointers ? (*status.frame_pointers ? "yes" : "no") : "-";
    text += fmt::format("{:>8}  {:<10}  {:<4}  {:<23}  {}\n", status.pid.value(), version, pointers,
                        verdict(status),
                        status.interpreter.empty() ? "-" : base::printable(status.interpreter));
    if (status.refusal) {
      explanations += fmt::format("pid {}: {}\n", status.pid.value(),
                                  base::printable(python::describe(*status.refusal)));
    }
    explanations += owner_explanation(status);
    for (const auto& warning : status.warnings) {
      explanations +=
          fmt::format("pid {}: warning: {}\n", status.pid.value(), base::printable(warning));
    }
  }
  if (!explanations.empty()) {
    text += "\n" + explanations;
  }
  if (report.processes.empty()) {
    text += "no Python process is visible\n";
  }
  if (report.not_examined != 0) {
    text += fmt::format(
        "{} could not be examined in time: they have too many files mapped, or too "
        "large ones\n",
        report.not_examined == 1 ? "1 process"
                                 : std::to_string(report.not_examined) + " processes");
  }
  if (report.unreadable != 0) {
    text += fmt::format("{} processes could not be inspected: {}\n", report.unreadable,
                        procfs::how_to_get(procfs::Capability::kSysPtrace));
  }
  return text;
}

}  // namespace pyinject::session
