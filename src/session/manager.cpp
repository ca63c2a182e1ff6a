#include "pyinject/session/manager.hpp"

#include "base/format.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/procfs/stat.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace pyinject::session {

namespace {

using python::Reason;
using python::Refusal;

// Not worth a line with -a: most processes of a machine are none of our business.
bool is_ordinary(Reason reason) {
  return python::has_gone(reason) || reason == Reason::kFinalizing ||
         reason == Reason::kNotPython || reason == Reason::kKernelThread ||
         reason == Reason::kOwnProcess || reason == Reason::kNoPermission;
}

constexpr std::chrono::milliseconds kHurriedShare{100};

}  // namespace

Manager::Manager(python::Detector& detector, python::Injector& injector, base::Logger& logger,
                 ManagerOptions options)
    : detector_{detector}, injector_{injector}, logger_{logger}, options_{std::move(options)} {}

Manager::~Manager() {
  try {
    if (options_.owner.session.pid.value() != 0) {
      deactivate_all();
    }
  } catch (const std::exception& error) {
    logger_.error("cannot switch the trampolines off: {}", error.what());
  }
}

void Manager::refuse(base::Pid pid, const Refusal& refusal, bool loud) {
  stats_.count_refusal(refusal.reason);
  const auto level = options_.strict && loud ? base::LogLevel::kError : base::LogLevel::kWarning;
  const bool quiet = !loud && is_ordinary(refusal.reason);
  logger_.log(quiet ? base::LogLevel::kDebug : level,
              fmt::format("pid {}: {}", pid.value(), python::describe(refusal)));
}

Manager::Selection Manager::select(const std::vector<base::Pid>& pids, bool named) {
  Selection selection;
  for (const auto pid : pids) {
    auto detection = detector_.detect(pid);
    if (const auto* refused = std::get_if<python::Refused>(&detection)) {
      refuse(pid, refused->refusal, named);
      selection.complete = false;
      if (const auto id = procfs::read_process_id(pid);
          id && refused->refusal.reason != Reason::kNotInitialized) {
        late_.insert(*id);
      }
      continue;
    }
    selection.targets.push_back(std::get<python::Target>(std::move(detection)));
  }
  if (const auto unreadable = stats_.of(Reason::kNoPermission); !named && unreadable != 0) {
    logger_.warning("{} processes could not be looked into: run as root or grant CAP_SYS_PTRACE",
                    unreadable);
  }
  return selection;
}

bool Manager::activate_one(python::Target target, bool loud) {
  const base::Pid pid = target.id.pid;
  for (const auto& warning : target.warnings) {
    logger_.warning("pid {}: {}", pid.value(), warning);
  }
  active_.reserve(active_.size() + 1);  // nothing may throw once it is on
  if (options_.before_activation) {
    options_.before_activation(target);
  }
  std::variant<python::Activation, Refusal> result;
  try {
    result = injector_.activate(
        target, {.owner = options_.owner, .deadline = options_.activation_deadline, .only = {}});
  } catch (const base::Error& error) {
    result = Refusal{.reason = Reason::kActivationFailed, .found = error.what(), .remedy = {}};
    // Nobody knows how far it came.
    deactivate_one(target, options_.deactivation_deadline);
  }
  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    refuse(pid, *refusal, loud);
    return false;
  }
  for (const auto& note : std::get<python::Activation>(result).notes) {
    logger_.warning("pid {}: {}", pid.value(), note);
  }
  active_.push_back({std::move(target), std::get<python::Activation>(std::move(result))});
  ++stats_.activated;
  if (listener_) {
    listener_(active_.back());
  }
  return true;
}

bool Manager::activate_all(std::vector<python::Target> targets) {
  for (auto& target : targets) {
    if (interrupted() || (!activate_one(std::move(target), true) && options_.strict)) {
      deactivate_all();
      return false;
    }
  }
  return true;
}

void Manager::activate_late(const std::vector<base::Pid>& pids) {
  for (const auto pid : pids) {
    const auto id = procfs::read_process_id(pid);
    const bool tracked = std::ranges::any_of(
        active_, [&](const auto& active) { return active.target.id.pid == pid; });
    if (!id || tracked || !late_.insert(*id).second) {
      continue;
    }
    auto detection = detector_.detect(pid);
    if (const auto* refused = std::get_if<python::Refused>(&detection)) {
      if (refused->refusal.reason == Reason::kNotInitialized) {
        late_.erase(*id);
      } else {
        refuse(pid, refused->refusal, false);
      }
      continue;
    }
    activate_one(std::get<python::Target>(std::move(detection)), false);
  }
}

// What a session has activated is its own to switch off, by whatever process.
std::optional<base::ProcessId> Manager::own_session() const {
  const auto& session = options_.owner.session;
  return session.pid.value() == 0 ? std::nullopt : std::optional{session};
}

bool Manager::deactivate_one(const python::Target& target, std::chrono::nanoseconds deadline) {
  std::variant<python::Deactivation, Refusal> result;
  try {
    result = injector_.deactivate(target, {.deadline = deadline, .only_of = own_session()});
  } catch (const base::Error& error) {
    result = Refusal{.reason = Reason::kActivationFailed, .found = error.what(), .remedy = {}};
  }
  const auto* refusal = std::get_if<Refusal>(&result);
  if (refusal == nullptr) {
    ++stats_.deactivated;
    return true;
  }
  if (python::has_gone(refusal->reason)) {
    logger_.debug("pid {}: it has exited, nothing to switch off", target.id.pid.value());
    return true;
  }
  stats_.count_deactivation_failure(refusal->reason);
  logger_.error(
      "pid {}: cannot switch the trampoline off: {}; it is still on: perf-pyinject deactivate -p "
      "{}",
      target.id.pid.value(), python::describe(*refusal), target.id.pid.value());
  return false;
}

bool Manager::deactivate_all(const std::vector<python::Target>& others) {
  std::vector<python::Target> pending;
  for (auto& active : active_) {
    if (active.activation.before == python::TrampolineState::kOff) {
      pending.push_back(active.target);
      // Done with, whatever comes: the destructor must not try a second time.
      active.activation.before = python::TrampolineState::kOnByUs;
    }
  }
  pending.insert(pending.end(), others.begin(), others.end());
  const auto deadline = base::Deadline::after(options_.deactivation_deadline);
  bool all_off = true;
  bool hurried = false;
  auto left = static_cast<std::chrono::nanoseconds::rep>(pending.size());
  for (const auto& target : pending) {
    // Each gets its share of what is left, so that one that hangs does not cost the others theirs.
    std::chrono::nanoseconds share =
        std::max<std::chrono::nanoseconds>(deadline.remaining() / left, kHurriedShare);
    hurried = hurried || interrupted();
    share = hurried ? kHurriedShare : share;
    all_off = deactivate_one(target, share) && all_off;
    --left;
  }
  return all_off;
}

}  // namespace pyinject::session
