#include "pyinject/fake/manager.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::fake {

namespace {

python::Target target_of(base::Pid pid) {
  python::Target target;
  target.id.pid = pid;
  target.version = {.major = 3, .minor = 15, .micro = 2, .level = 0xf, .serial = 0};
  target.interpreter = "/usr/bin/python3";
  return target;
}

}  // namespace

void Manager::note(const std::string& what, base::Pid pid) {
  calls.push_back(what + " " + std::to_string(pid.value()));
}

bool Manager::refused(const std::map<base::Pid, python::Reason>& script, base::Pid pid) {
  const auto refusal = script.find(pid);
  if (refusal == script.end()) {
    return false;
  }
  stats_.count_refusal(refusal->second);
  return true;
}

std::shared_ptr<const targets::ActiveTarget> Manager::activate(python::Target target) {
  python::Activation activation;
  activation.mechanism = python::Mechanism::kPendingQueue;
  ++stats_.activated;
  return active_.emplace_back(std::make_shared<targets::ActiveTarget>(
      targets::ActiveTarget{.target = std::move(target), .activation = std::move(activation)}));
}

targets::Selection Manager::select(const std::vector<base::Pid>& pids, bool /*named*/) {
  const std::scoped_lock lock{mutex_};
  targets::Selection selection;
  for (const auto pid : pids) {
    note("select", pid);
    if (refused(refusals, pid)) {
      selection.complete = false;
    } else {
      selection.targets.push_back(target_of(pid));
    }
  }
  return selection;
}

void Manager::announce(const targets::ActiveTarget& active) {
  if (listener_) {
    listener_(active);
  }
}

bool Manager::activate_all(std::vector<python::Target> targets) {
  for (auto& target : targets) {
    std::unique_lock lock{mutex_};
    note("activate", target.id.pid);
    if (!refused(activate_refusals, target.id.pid)) {
      const auto active = activate(std::move(target));
      lock.unlock();
      announce(*active);
    }
  }
  return true;
}

targets::LateArrival Manager::activate_late(base::Pid pid) {
  std::unique_lock lock{mutex_};
  note("late", pid);
  const auto same = [&](const auto& active) { return active->target.id.pid == pid; };
  if (std::ranges::any_of(active_, same)) {
    return {.late = targets::Late::kKnown};
  }
  if (late_ended_ || refused(refusals, pid)) {
    return {.late = targets::Late::kRefused};
  }
  const auto active = activate(target_of(pid));
  lock.unlock();
  announce(*active);
  return {.late = targets::Late::kActive};
}

void Manager::missed(base::Pid pid) {
  const std::scoped_lock lock{mutex_};
  note("missed", pid);
  stats_.count_refusal(python::Reason::kExited);
}

void Manager::end_late_activations() {
  const std::scoped_lock lock{mutex_};
  late_ended_ = true;
}

std::shared_ptr<const targets::ActiveTarget> Manager::forget(base::Pid pid) {
  const std::scoped_lock lock{mutex_};
  note("forget", pid);
  const auto found = std::ranges::find_if(
      active_, [&](const auto& active) { return active->target.id.pid == pid; });
  if (found == active_.end()) {
    return nullptr;
  }
  auto gone = std::move(*found);
  active_.erase(found);
  return gone;
}

bool Manager::deactivate_all(const std::vector<python::Target>& others) {
  const std::scoped_lock lock{mutex_};
  std::vector<base::Pid> pids;
  for (const auto& active : active_) {
    pids.push_back(active->target.id.pid);
  }
  for (const auto& other : others) {
    pids.push_back(other.id.pid);
  }
  bool all_off = true;
  for (const auto pid : pids) {
    note("deactivate", pid);
    if (const auto refusal = deactivate_refusals.find(pid); refusal != deactivate_refusals.end()) {
      stats_.count_deactivation_failure(refusal->second);
      all_off = false;
    } else {
      ++stats_.deactivated;
    }
  }
  return all_off;
}

}  // namespace pyinject::fake
