// The manager of real processes: select and activate_all() are in manager.cpp, the multi-threaded
// part in manager_threads.cpp.
#pragma once

#include "base/file.hpp"
#include "pyinject/targets/manager.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace pyinject::targets {

// A process from one exec to the next.
struct ProcessImage {
  base::ProcessId id;
  base::RemoteAddress stack_begin;  // null: unknown

  [[nodiscard]] bool same_as(const ProcessImage& other) const {
    return id == other.id && (stack_begin == other.stack_begin || stack_begin.is_null() ||
                              other.stack_begin.is_null());
  }
};
// nullopt: no such process.
[[nodiscard]] std::optional<ProcessImage> image_of(base::Pid pid);
// Whether the process exists. While it execs, or while its program is being mapped, it can look for
// a moment as if it had exited.
[[nodiscard]] bool lives(base::ProcessId id);

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
  std::shared_ptr<const ActiveTarget> forget(base::Pid pid) override;
  bool deactivate_all(const std::vector<python::Target>& others) override;
  void keep_trampolines() override;
  [[nodiscard]] ActiveTargets active() const override;
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
  void settle(base::Pid pid, python::Reason reason);
  [[nodiscard]] bool is_of_user(base::Pid pid) const;
  void refuse(base::Pid pid, const python::Refusal& refusal, bool loud);
  // The right to call the listener or a function of the options: one call at a time. No mutex is
  // locked during the call, so that a slow one blocks only those that need a turn themselves, and
  // forget() of the target that it announces.
  class Turn {
   public:
    explicit Turn(ProcessManager& manager);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    // Until the turn ends, forget() of ACTIVE waits. False: ACTIVE has been forgotten.
    [[nodiscard]] bool announces(const std::shared_ptr<ActiveTarget>& active);

   private:
    ProcessManager& manager_;
  };
  void tell(const Event& event);
  void announce(const std::shared_ptr<ActiveTarget>& active, std::chrono::nanoseconds duration);
  [[nodiscard]] std::optional<base::ProcessId> own_session() const;
  [[nodiscard]] bool inherits(const python::Detection& detection) const;
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
  mutable std::mutex mutex_;  // protects all members below
  std::condition_variable turn_ended_;
  bool taken_ = false;                  // a Turn exists
  std::optional<base::Pid> announced_;  // the listener is being called for it
  std::vector<std::shared_ptr<ActiveTarget>> active_;
  std::vector<python::Target> left_on_;  // could not be switched off after their activation failed
  bool all_off_ = true;                  // no switch-off by deactivate_all() has failed so far
  std::map<base::Pid, ProcessImage> settled_;  // activated or refused: not tried again
  std::set<base::Pid> pending_;                // currently tried by a thread
};

}  // namespace pyinject::targets
