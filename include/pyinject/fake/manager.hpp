// A test double for code that uses a targets::Manager.
//
// For example:
//   fake::Manager processes;
//   processes.refusals[base::Pid{12}] = python::Reason::kZombie;
//   const auto selection = processes.select({base::Pid{12}, base::Pid{13}});  // has 13 alone
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/stats.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::fake {

// Without a script every process is a Python that can be switched on and off. Counts, and calls its
// listener, as the real manager does; always lenient and without an owner: it touches nothing, so
// nothing has to be undone. The alternative, the real manager with fake::Detector and
// fake::Injector, tests more.
class Manager : public targets::Manager {
 public:
  using targets::Manager::deactivate_all;
  using targets::Manager::select;

  targets::Selection select(const std::vector<base::Pid>& pids, bool named) override;
  void on_activation(Listener listener) override { listener_ = std::move(listener); }
  bool activate_all(std::vector<python::Target> targets) override;
  targets::LateArrival activate_late(base::Pid pid) override;
  void end_late_activations() override;
  void missed(base::Pid pid) override;
  std::shared_ptr<const targets::ActiveTarget> forget(base::Pid pid) override;
  bool deactivate_all(const std::vector<python::Target>& others) override;
  [[nodiscard]] targets::ActiveTargets active() const override {
    const std::scoped_lock lock{mutex_};
    return active_;
  }
  [[nodiscard]] const targets::Stats& stats() const override { return stats_; }

  // NOLINTBEGIN(cppcoreguidelines-non-private-member-variables-in-classes): a script and a book
  std::map<base::Pid, python::Reason> refusals;             // by select(), activate_late()
  std::map<base::Pid, python::Reason> activate_refusals;    // by activate_all()
  std::map<base::Pid, python::Reason> deactivate_refusals;  // by deactivate_all()

  std::vector<std::string> calls;  // "select 12", "activate 12", "late 12", "deactivate 12" ...
  // NOLINTEND(cppcoreguidelines-non-private-member-variables-in-classes)

 private:
  void note(const std::string& what, base::Pid pid);
  [[nodiscard]] bool refused(const std::map<base::Pid, python::Reason>& script, base::Pid pid);
  [[nodiscard]] std::shared_ptr<const targets::ActiveTarget> activate(python::Target target);
  void announce(const targets::ActiveTarget& active);  // without MUTEX_: it may call this manager

  mutable std::mutex mutex_;
  Listener listener_;
  targets::ActiveTargets active_;
  targets::Stats stats_;
  bool late_ended_ = false;
};

}  // namespace pyinject::fake
