// Activates a set of processes and switches off what it has activated.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/injector.hpp"
#include "pyinject/session/stats.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace pyinject::session {

struct ManagerOptions {
  // Strict: one failure makes activate_all() undo what it did. Lenient: failures are logged and
  // counted, a process that is no Python not even logged.
  bool strict = true;
  python::Owner owner = {};  // {0, 0}: what is activated stays on when the manager goes
  std::chrono::nanoseconds activation_deadline = std::chrono::seconds{5};    // of one target
  std::chrono::nanoseconds deactivation_deadline = std::chrono::seconds{5};  // of all together
  // Asked between targets. True: activate_all() gives up as after a failure, deactivate_all()
  // makes the rest as short as possible.
  std::function<bool()> interrupted = {};
  // Called with each target that is about to be touched.
  std::function<void(const python::Target&)> before_activation = {};
};

struct ActiveTarget {
  python::Target target;
  python::Activation activation;
};

class Manager {
 public:
  Manager(python::Detector& detector, python::Injector& injector, base::Logger& logger,
          ManagerOptions options);
  // With an owner: the safety net, deactivate_all().
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Those of PIDS that can be activated or are on already. COMPLETE: none was refused; every
  // refusal was counted and, when the user has NAMED the pids, logged.
  struct Selection {
    std::vector<python::Target> targets;
    bool complete = true;
  };
  [[nodiscard]] Selection select(const std::vector<base::Pid>& pids, bool named = true);

  // Called for every target that is active, at once.
  using Listener = std::function<void(const ActiveTarget&)>;
  void on_activation(Listener listener) { listener_ = std::move(listener); }

  // False: strict and one failed, or interrupted; what had been activated is off again. A target
  // that was on before counts as active and is left on at the end.
  [[nodiscard]] bool activate_all(std::vector<python::Target> targets);

  // Processes that appeared later: always lenient, each is tried once unless its interpreter was
  // not ready yet.
  void activate_late(const std::vector<base::Pid>& pids);

  // Switches off what this manager has switched on and whatever else is on by us among OTHERS
  // (children that inherited it). Bounded over all, but each is given 100 ms at least; a process
  // that has gone is no failure. False: one is still on; it was logged.
  bool deactivate_all(const std::vector<python::Target>& others = {});

  [[nodiscard]] const std::vector<ActiveTarget>& active() const { return active_; }
  [[nodiscard]] const Stats& stats() const { return stats_; }

 private:
  // False: refused, logged and counted.
  bool activate_one(python::Target target, bool loud);
  [[nodiscard]] bool interrupted() const { return options_.interrupted && options_.interrupted(); }
  void refuse(base::Pid pid, const python::Refusal& refusal, bool loud);
  [[nodiscard]] std::optional<base::ProcessId> own_session() const;
  bool deactivate_one(const python::Target& target, std::chrono::nanoseconds deadline);

  python::Detector& detector_;
  python::Injector& injector_;
  base::Logger& logger_;
  ManagerOptions options_;
  Listener listener_;
  std::vector<ActiveTarget> active_;
  std::set<base::ProcessId> late_;  // not to be tried by activate_late(): was tried before
  Stats stats_;
};

}  // namespace pyinject::session
