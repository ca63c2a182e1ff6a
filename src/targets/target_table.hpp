// What a session has made of each process: being tried, settled, active; and whose turn it is to
// hear about it.
#pragma once

#include "pyinject/targets/manager.hpp"

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
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

// Thread-safe.
class TargetTable {
 public:
  // An entry that is made before its target is switched on: add() does not throw.
  using Entry = std::list<std::shared_ptr<ActiveTarget>>;

  // Begins a trial of a process that appeared later: end() must follow. kKnown or
  // kDifferentProgram: there is nothing to try.
  [[nodiscard]] std::optional<Late> begin(const ProcessImage& image);
  // SETTLED: it was activated or refused, and is not tried again.
  void end(base::Pid pid, const std::optional<ProcessImage>& settled);
  void settle(const ProcessImage& image);
  void try_again(base::Pid pid);

  void add(Entry entry) noexcept;
  // It failed, may be on, and could not be switched off.
  void add_left_on(const python::Target& target);

  [[nodiscard]] ActiveTargets active() const;
  // Waits while a Turn announces PID. The entry is null if there is none.
  std::shared_ptr<const ActiveTarget> forget(base::Pid pid);

  // The targets that this session has switched on.
  [[nodiscard]] std::vector<python::Target> switched_on() const;
  // The same, and those that were left on; each is returned once.
  [[nodiscard]] std::vector<python::Target> take_switched_on();

  // The right to call a function of the caller: one call at a time. No mutex is locked during the
  // call, so that a slow one blocks only those that need a turn themselves, and forget() of the
  // target that it announces.
  class Turn {
   public:
    explicit Turn(TargetTable& table);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    // Until the turn ends, forget() of ACTIVE waits. False: ACTIVE has been forgotten.
    [[nodiscard]] bool announces(const ActiveTarget& active);

   private:
    TargetTable& table_;
  };

 private:
  mutable std::mutex mutex_;
  std::condition_variable turn_ended_;
  bool taken_ = false;                  // a Turn exists
  std::optional<base::Pid> announced_;  // by that Turn
  Entry active_;
  std::vector<python::Target> left_on_;
  std::map<base::Pid, ProcessImage> settled_;
  std::set<base::Pid> pending_;  // currently tried by a thread
};

}  // namespace pyinject::targets
