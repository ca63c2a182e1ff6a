#include "record/launched_processes.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/executable.hpp"
#include "procfs/stat.hpp"
#include "pyinject/targets/target_selection.hpp"

#include <fmt/format.h>

#include <vector>

namespace pyinject::record {

namespace {

using python::Reason;

// Not Python, or already exited: not worth reporting.
bool is_none_of_ours(Reason reason) {
  return python::has_gone(reason) || reason == Reason::kNotPython || reason == Reason::kFinalizing;
}

}  // namespace

void LaunchedProcesses::look(targets::Manager& manager) {
  const auto command = procfs::read_process_id(command_);
  if (!command) {
    return;
  }
  auto pids = targets::possible_children({{.id = *command, .since = 0, .executable = {}}}, {});
  pids.insert(pids.begin(), command_);
  std::map<base::ProcessId, Program> now;
  for (const auto pid : pids) {
    const auto id = procfs::read_process_id(pid);
    const auto program = id ? procfs::executable_of(pid) : std::nullopt;
    if (!program) {
      continue;
    }
    const auto known = known_.find(*id);
    if ((known != known_.end() && known->second == *program) || look_at(pid, manager)) {
      now.emplace(*id, *program);
    }
  }
  known_ = std::move(now);
}

bool LaunchedProcesses::look_at(base::Pid pid, targets::Manager& manager) {
  const auto detection = detector_.detect(
      pid, base::Cancellation{base::Deadline::after(std::chrono::milliseconds{500})});
  if (const auto* const refused = std::get_if<python::Refused>(&detection)) {
    const auto reason = refused->refusal.reason;
    if (reason == Reason::kNotInitialized) {
      return false;
    }
    const bool known =
        is_none_of_ours(reason) || !reported_.emplace(reason, refused->version).second;
    // What prevents an attach did not prevent CPython itself from starting the trampoline.
    const bool may_be_on = reason == Reason::kNoMailboxSpace;
    logger_.log(
        known ? base::LogLevel::kDebug : base::LogLevel::kWarning,
        fmt::format(
            "pid {}: {}{}", pid.value(), python::describe(refused->refusal),
            may_be_on ? "; its Python functions have names if it honors PYTHONPERFSUPPORT" : ""));
    return true;
  }
  const auto& target = std::get<python::Target>(detection);
  if (target.state == python::TrampolineState::kOff) {
    logger_.info(
        "pid {}: Python {} ignores PYTHONPERFSUPPORT (-I, -E, another environment): attaching to "
        "it",
        pid.value(), python::to_string(target.version));
  }
  (void)manager.activate_late(pid);
  if (frame_pointers_ && !told_of_extension_) {
    if (const auto module = extensions_.without_frame_pointers(pid)) {
      told_of_extension_ = true;
      logger_.warning(
          "pid {}: {} was built without frame pointers: its callers may be missing; --call-graph "
          "dwarf,65528 shows them",
          pid.value(), base::printable(*module));
    }
  }
  return true;
}

}  // namespace pyinject::record
