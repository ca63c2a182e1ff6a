#include "pyinject/targets/status_report.hpp"

#include "base/text.hpp"
#include "base/user_name.hpp"
#include "procfs/cmdline.hpp"
#include "procfs/status.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "targets/examine_all.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include <sys/types.h>

namespace pyinject::targets {

namespace {

using nlohmann::ordered_json;

// Whether a list of Python processes should show this process.
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

std::optional<procfs::Status> status_file(base::Pid pid) {
  try {
    return procfs::read_status(pid);
  } catch (const base::Error&) {
    return std::nullopt;  // hidepid=1, for example: the rest is valid without it
  }
}

// A process may exit at any time: unknown fields then stay empty.
void describe_process(ProcessStatus& status, std::map<uid_t, std::string>& users) {
  constexpr std::size_t kEffective = 1;
  const auto known = status_file(status.pid);
  if (known) {
    auto& user = users[known->uids[kEffective]];
    if (user.empty()) {
      user = base::user_name(known->uids[kEffective]);
    }
    status.user = user;
  }
  status.command = procfs::read_command(status.pid);
  if (status.command.empty() && known) {
    status.command = fmt::format("[{}]", known->name);
  }
}

// Whether an engine without the trampoline might read its stacks. Not if it is no Python, is
// unreadable, or will be ready in a moment.
bool concerns_the_trampoline(const ProcessStatus& status) {
  using python::Reason;
  static constexpr std::array kOthers{
      Reason::kOwnProcess, Reason::kKernelThread, Reason::kNoPermission,   Reason::kNotExamined,
      Reason::kNotPython,  Reason::kPythonTooOld, Reason::kNotInitialized, Reason::kFinalizing};
  return status.refusal && !python::has_gone(status.refusal->reason) &&
         std::ranges::find(kOthers, status.refusal->reason) == kOthers.end();
}

void observe_refused(python::Detector& observer, std::vector<ProcessStatus>& processes) {
  std::vector<base::Pid> pids;
  for (const auto& status : processes) {
    if (concerns_the_trampoline(status)) {
      pids.push_back(status.pid);
    }
  }
  const auto examined = examine_all(observer, pids, base::Cancellation::never(), kPatienceUnnamed);
  for (std::size_t i = 0; i < pids.size(); ++i) {
    std::ranges::find(processes, pids[i], &ProcessStatus::pid)->only_bpf =
        std::holds_alternative<python::Target>(examined[i].detection);
  }
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

StatusReport report_status(python::Detector& detector, const std::vector<base::Pid>& pids,
                           python::Detector* observer) {
  StatusReport report;
  std::map<uid_t, std::string> users;
  const auto all = pids.empty() ? visible_processes() : without_repetitions(pids);
  const auto examined = examine_all(detector, all, base::Cancellation::never(),
                                    pids.empty() ? kPatienceUnnamed : kPatienceNamed);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto status = status_of(all[i], examined[i].detection);
    if (!pids.empty() || is_python(status)) {
      describe_process(status, users);
      report.processes.push_back(std::move(status));
    } else if (status.refusal->reason == python::Reason::kNoPermission) {
      ++report.unreadable;
    } else if (status.refusal->reason == python::Reason::kNotExamined) {
      ++report.not_examined;
    }
  }
  if (observer != nullptr) {
    observe_refused(*observer, report.processes);
  }
  return report;
}

std::string verdict(const ProcessStatus& status) {
  if (status.only_bpf) {
    return "only --engine bpf";
  }
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

}  // namespace pyinject::targets
