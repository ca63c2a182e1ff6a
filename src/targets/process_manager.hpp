// The manager of real processes: select and activate_all() are in manager.cpp, the multi-threaded
// part in manager_threads.cpp.
#pragma once

#include "base/file.hpp"
#include "pyinject/targets/manager.hpp"
#include "targets/target_table.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace pyinject::targets {

class ProcessManager : public Manager {
 public:
  ProcessManager(python::Detector& detector, TargetHandler& handler, base::Logger& logger,
                 ManagerOptions options)
      : detector_{detector}, handler_{handler}, logger_{logger}, options_{std::move(options)} {}
  ProcessManager(python::Detector& detector, std::unique_ptr<TargetHandler> handler,
                 base::Logger& logger, ManagerOptions options)
      : detector_{detector},
        own_handler_{std::move(handler)},
        handler_{*own_handler_},
        logger_{logger},
        options_{std::move(options)} {}
  ~ProcessManager() override;

  Selection select(const std::vector<base::Pid>& pids, bool named) override;
  void on_activation(Listener listener) override { listener_ = std::move(listener); }
  bool activate_all(std::vector<python::Target> targets) override;
  LateArrival activate_late(base::Pid pid) override;
  void end_late_activations() override {
    cancelled_ = true;
    examinations_.cancel();
  }
  void missed(base::Pid pid) override;
  std::shared_ptr<const ActiveTarget> forget(base::Pid pid) override { return table_.forget(pid); }
  bool deactivate_all(const std::vector<python::Target>& others) override;
  void keep_trampolines() override;
  [[nodiscard]] ActiveTargets active() const override { return table_.active(); }
  [[nodiscard]] const Stats& stats() const override { return stats_; }

 private:
  // Concurrent activations, not counting those that only wait for their targets.
  static constexpr std::size_t kMostAtATime = 8;

  struct Attempt {
    base::Deadline deadline;
    bool loud = false;   // report a refusal to the user
    bool again = false;  // it is tried again if it missed the deadline
  };
  // kActive; kRefused, logged and counted; kNotYet, if it is not loud or is tried again.
  Late activate_one(python::Target target, Attempt attempt);
  bool activate_side_by_side(std::vector<python::Target> targets);
  [[nodiscard]] bool interrupted() const { return options_.interrupted && options_.interrupted(); }
  void note_detection(base::Pid pid, const python::Detection& detection,
                      std::chrono::nanoseconds duration);
  [[nodiscard]] python::Detection detect_late(base::Pid pid);
  [[nodiscard]] bool is_of_user(base::Pid pid) const;
  void refuse(base::Pid pid, const python::Refusal& refusal, bool loud);
  void notify(const Event& event);
  void announce(const ActiveTarget& active, std::chrono::nanoseconds duration);
  [[nodiscard]] std::optional<base::ProcessId> own_session() const;
  bool deactivate_one(const python::Target& target, std::chrono::nanoseconds deadline);

  python::Detector& detector_;
  std::unique_ptr<TargetHandler> own_handler_;  // null: owned by the caller
  TargetHandler& handler_;
  base::Logger& logger_;
  const ManagerOptions options_;
  Listener listener_;
  Stats stats_;
  base::DescriptorReserve reserve_;  // for deactivate_all()
  std::set<base::Pid> named_;        // given by the user
  std::atomic<std::size_t> warnings_ = 0;
  std::atomic<bool> cancelled_ = false;  // no more activations
  base::Cancellation examinations_{options_.cancellation == nullptr ? base::Cancellation::never()
                                                                    : *options_.cancellation};
  bool all_off_ = true;  // no switch-off by deactivate_all() has failed so far
  TargetTable table_;
};

}  // namespace pyinject::targets
