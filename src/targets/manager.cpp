#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/own_rights.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/base/error.hpp"
#include "targets/examine_all.hpp"
#include "targets/process_manager.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <variant>

namespace pyinject::targets {

namespace {

using python::Reason;
using python::Refusal;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Clock = base::Deadline::Clock;

// Not worth a message with -a: applies to most processes of a machine.
bool is_ordinary(Reason reason) {
  return python::has_gone(reason) || reason == Reason::kFinalizing ||
         reason == Reason::kNotInitialized ||  // retried
         reason == Reason::kNotPython || reason == Reason::kKernelThread ||
         reason == Reason::kOwnProcess || reason == Reason::kNoPermission;
}

// Whether a process that was refused for REASON stays what it is. One that has not mapped its
// interpreter yet, or that is about to exec, may still become a Python.
bool is_final(Reason reason, const ProcessImage& image) {
  return reason != Reason::kNotInitialized && reason != Reason::kNotPython &&
         !(python::has_gone(reason) && lives(image.id));
}

// Limit for processes that the user did not give: a program that keeps starting old Pythons says
// nothing new.
constexpr std::size_t kMostWarnings = 100;
constexpr milliseconds kHurriedShare{100};
// Per target; blocks the thread that waits for the recording's end. The next tick retries.
constexpr milliseconds kKeepingShare{25};

}  // namespace

ProcessManager::~ProcessManager() {
  try {
    if (options_.owner.session.pid.value() != 0) {
      deactivate_all({});
    }
  } catch (const std::exception& error) {
    logger_.error("cannot switch the trampolines off: {}", error.what());
  }
}

void ProcessManager::notify(const Event& event) {
  if (options_.on_event) {
    const TargetTable::Turn turn{table_};
    options_.on_event(event);
  }
}

void ProcessManager::announce(const ActiveTarget& active, nanoseconds duration) {
  notify({.kind = EventKind::kActivated,
          .pid = active.target.id.pid,
          .reason = {},
          .duration = duration});
  if (listener_) {
    TargetTable::Turn turn{table_};
    if (turn.announces(active)) {
      listener_(active);
    }
  }
}

void ProcessManager::refuse(base::Pid pid, const Refusal& refusal, bool loud) {
  stats_.count_refusal(refusal.reason);
  const auto level = options_.strict && loud ? base::LogLevel::kError : base::LogLevel::kWarning;
  const bool quiet = !loud && (is_ordinary(refusal.reason) || ++warnings_ > kMostWarnings);
  logger_.log(quiet ? base::LogLevel::kDebug : level,
              fmt::format("pid {}: {}", pid.value(), python::describe(refusal)));
}

void ProcessManager::note_detection(base::Pid pid, const python::Detection& detection,
                                    nanoseconds duration) {
  const auto* refused = std::get_if<python::Refused>(&detection);
  if (refused == nullptr || refused->refusal.reason != Reason::kNotInitialized) {
    notify({.kind = refused == nullptr ? EventKind::kDetected : EventKind::kSkipped,
            .pid = pid,
            .reason = refused == nullptr ? std::nullopt : std::optional{refused->refusal.reason},
            .duration = duration});
  }
}

Selection ProcessManager::select(const std::vector<base::Pid>& pids, bool named) {
  Selection selection;
  auto examined =
      examine_all(detector_, pids, examinations_, named ? kPatienceNamed : kPatienceUnnamed);
  if (examinations_.cancelled()) {
    return {.targets = {}, .complete = false};
  }
  for (std::size_t i = 0; i < pids.size(); ++i) {
    const auto pid = pids[i];
    auto& detection = examined[i].detection;
    if (named) {
      named_.insert(pid);
    }
    note_detection(pid, detection, examined[i].duration);
    if (const auto* refused = std::get_if<python::Refused>(&detection)) {
      // A parent without Python, or with a libpython that it leaves to its children (mod_wsgi).
      const bool accepted =
          options_.families && (refused->refusal.reason == Reason::kNotPython ||
                                refused->refusal.reason == Reason::kNotInitialized);
      refuse(pid, refused->refusal, named && !accepted);
      selection.complete = selection.complete && accepted;
      if (const auto image = image_of(pid); image && is_final(refused->refusal.reason, *image)) {
        table_.settle(*image);
      }
      if (refused->refusal.reason == Reason::kNotPython) {
        selection.no_pythons.insert(pid);
      }
      if (refused->refusal.reason == Reason::kNotInitialized) {
        selection.uninitialized.insert(pid);
      }
      continue;
    }
    selection.targets.push_back(std::get<python::Target>(std::move(detection)));
  }
  if (const auto unreadable = stats_.of(Reason::kNoPermission); !named && unreadable != 0) {
    logger_.warning("{} could not be inspected: {}",
                    base::counted(unreadable, "process", "processes"),
                    procfs::how_to_get(procfs::Capability::kSysPtrace));
  }
  return selection;
}

Late ProcessManager::activate_one(python::Target target, Attempt attempt) {
  const base::Pid pid = target.id.pid;
  for (const auto& warning : target.warnings) {
    logger_.warning("pid {}: {}", pid.value(), warning);
  }
  table_.settle({.id = target.id, .stack_begin = target.stack_begin});
  if (options_.before_activation) {
    const TargetTable::Turn turn{table_};
    options_.before_activation(target);
  }
  const auto active = std::make_shared<ActiveTarget>();
  TargetTable::Entry entry{active};
  const auto begin = Clock::now();
  std::variant<python::Activation, Refusal> result;
  try {
    result = handler_.attach(
        target, {.owner = options_.owner,
                 .deadline = std::min(attempt.deadline.remaining(), options_.activation_deadline),
                 .cancelled = &cancelled_});
  } catch (const std::exception& error) {
    result = Refusal{.reason = Reason::kActivationFailed, .found = error.what(), .remedy = {}};
    // The target may be on.
    if (!deactivate_one(target, options_.deactivation_deadline)) {
      table_.add_left_on(target);
    }
  }
  const auto duration = Clock::now() - begin;
  if (const auto* refusal = std::get_if<Refusal>(&result)) {
    // The process exec'ed since detection: retry instead of refusing.
    if (!attempt.loud && python::has_gone(refusal->reason) && lives(target.id)) {
      return Late::kNotYet;
    }
    const bool met_deadline =
        refusal->reason == Reason::kDeadline || refusal->reason == Reason::kStopDeadline;
    if (attempt.again && met_deadline && !cancelled_) {
      logger_.debug("pid {}: {}; trying again later", pid.value(), python::describe(*refusal));
      table_.try_again(pid);
      return Late::kNotYet;
    }
    refuse(pid, *refusal, attempt.loud);
    notify(
        {.kind = EventKind::kFailed, .pid = pid, .reason = refusal->reason, .duration = duration});
    return Late::kRefused;
  }
  // First record that it is on: whatever fails from here on, it will be switched off.
  const auto notes = std::exchange(std::get<python::Activation>(result).notes, {});
  active->target = std::move(target);
  active->activation = std::get<python::Activation>(std::move(result));
  table_.add(std::move(entry));
  ++stats_.activated;
  for (const auto& note : notes) {
    logger_.warning("pid {}: {}", pid.value(), note);
  }
  announce(*active, duration);
  return Late::kActive;
}

// Whether to report everything about PID to the user and to apply `strict` to it.
bool ProcessManager::is_of_user(base::Pid pid) const {
  return !options_.families || named_.contains(pid);
}

bool ProcessManager::activate_all(std::vector<python::Target> targets) {
  handler_.prepare();
  std::vector<python::Target> lenient;
  for (auto& target : targets) {
    if (!options_.strict || !is_of_user(target.id.pid)) {
      lenient.push_back(std::move(target));
      continue;
    }
    const base::Deadline deadline = base::Deadline::after(options_.activation_deadline);
    if (interrupted() ||
        activate_one(std::move(target), {.deadline = deadline, .loud = true}) != Late::kActive) {
      deactivate_all({});
      return false;
    }
  }
  bool done = !interrupted();
  if (done && lenient.size() == 1 && !options_.tried_again) {
    const bool loud = is_of_user(lenient.front().id.pid);
    (void)activate_one(
        std::move(lenient.front()),
        {.deadline = base::Deadline::after(options_.activation_deadline), .loud = loud});
  } else if (done && !lenient.empty()) {
    done = activate_side_by_side(std::move(lenient));
  }
  if (!done) {
    deactivate_all({});
  }
  return done;
}

void ProcessManager::missed(base::Pid pid) {
  refuse(
      pid,
      {.reason = Reason::kExited, .found = "it ended before it could be activated", .remedy = {}},
      false);
}

// Any process of a session may switch off what the session has activated.
std::optional<base::ProcessId> ProcessManager::own_session() const {
  const auto& session = options_.owner.session;
  return session.pid.value() == 0 ? std::nullopt : std::optional{session};
}

bool ProcessManager::deactivate_one(const python::Target& target, nanoseconds deadline) {
  const auto begin = Clock::now();
  std::variant<python::Deactivation, Refusal> result;
  try {
    result = handler_.release(target, {.deadline = deadline, .only_of = own_session()});
  } catch (const std::exception& error) {
    // Whatever ran short here, the target has not exited because of it.
    result = Refusal{.reason = Reason::kActivationFailed, .found = error.what(), .remedy = {}};
  }
  const auto* refusal = std::get_if<Refusal>(&result);
  if (refusal == nullptr) {
    ++stats_.deactivated;
    const auto& deactivation = std::get<python::Deactivation>(result);
    if (!deactivation.note.empty()) {
      logger_.warning("pid {}: {}", target.id.pid.value(), deactivation.note);
    }
    notify({.kind = EventKind::kDeactivated,
            .pid = target.id.pid,
            .reason = {},
            .duration = Clock::now() - begin,
            .off_by_program = deactivation.off_by_program});
    return true;
  }
  // An interpreter that is finalizing runs no request, and its trampoline ends with it.
  if (python::has_gone(refusal->reason) || refusal->reason == Reason::kFinalizing) {
    logger_.debug("pid {}: nothing to switch off: {}", target.id.pid.value(),
                  python::describe(*refusal));
    notify({.kind = EventKind::kDeactivated,
            .pid = target.id.pid,
            .reason = refusal->reason,
            .duration = Clock::now() - begin});
    return true;
  }
  notify({.kind = EventKind::kFailed,
          .pid = target.id.pid,
          .reason = refusal->reason,
          .duration = Clock::now() - begin});
  stats_.count_deactivation_failure(refusal->reason);
  const auto pid = target.id.pid.value();
  const auto remedy =
      refusal->reason == Reason::kOtherSession
          ? std::string{}
          : fmt::format("; it may still be on: perf-pyinject deactivate -p {}", pid);
  logger_.error("pid {}: cannot switch the trampoline off: {}{}", pid, python::describe(*refusal),
                remedy);
  return false;
}

bool ProcessManager::deactivate_all(const std::vector<python::Target>& others) {
  reserve_.release();
  // Not tried again in the destructor, whatever the outcome.
  std::vector<python::Target> pending = table_.take_switched_on();
  pending.insert(pending.end(), others.begin(), others.end());
  const auto deadline = base::Deadline::after(options_.deactivation_deadline);
  bool hurried = false;
  auto left = static_cast<nanoseconds::rep>(pending.size());
  for (const auto& target : pending) {
    // Each gets a share of the remaining time, so that one that hangs does not use up the others'
    // time.
    nanoseconds share = std::max<nanoseconds>(deadline.remaining() / left, kHurriedShare);
    hurried = hurried || interrupted();
    share = hurried ? kHurriedShare : share;
    all_off_ = deactivate_one(target, share) && all_off_;
    --left;
  }
  return all_off_;
}

void ProcessManager::keep_trampolines() {
  for (const auto& target : table_.switched_on()) {
    // A persistent failure is reported when the target is switched off.
    try {
      if (const auto refusal = handler_.keep_trampolines(target, kKeepingShare)) {
        logger_.debug("pid {}: {}", target.id.pid.value(), python::describe(*refusal));
      }
    } catch (const std::exception& error) {
      logger_.debug("pid {}: {}", target.id.pid.value(), error.what());
    }
  }
}

std::unique_ptr<Manager> make_manager(python::Detector& detector, TargetHandler& handler,
                                      base::Logger& logger, ManagerOptions options) {
  return std::make_unique<ProcessManager>(detector, handler, logger, std::move(options));
}

std::unique_ptr<Manager> make_manager(python::Detector& detector, python::Injector& injector,
                                      base::Logger& logger, ManagerOptions options) {
  return std::make_unique<ProcessManager>(detector, std::make_unique<TrampolineHandler>(injector),
                                          logger, std::move(options));
}

}  // namespace pyinject::targets
