// Python processes that start, or exec a Python, during a recording.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/scope.hpp"
#include "pyinject/watch/process_watch.hpp"
#include "targets/activation_threads.hpp"
#include "targets/file_judge.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace pyinject::targets {

struct ArrivalListener {
  // A process that runs Python forked CHILD, which runs Python, too, and is on if its parent was.
  std::function<void(base::Pid child)> forked;
  // A process that ran Python has exited or exec'ed. ACTIVE: its entry if it was a target.
  std::function<void(base::Pid pid, std::shared_ptr<const ActiveTarget> active)> ended;
};

// Not thread-safe; internal threads do the activations.
class LateArrivals {
 public:
  // TARGET_SET: the processes to record. From here on no process is missed.
  LateArrivals(std::unique_ptr<watch::ProcessWatch> watch, python::Detector& detector,
               Manager& manager, base::Logger& logger, TargetSet& target_set,
               ArrivalListener listener);
  ~LateArrivals() { stop(); }
  LateArrivals(const LateArrivals&) = delete;
  LateArrivals& operator=(const LateArrivals&) = delete;

  // PID is perf, which has a Python interpreter for its scripts.
  void ignore(base::Pid pid) { left_out_ = pid; }
  // PIDS are known to run Python: so do their children.
  void add_known(const std::vector<base::Pid>& pids);
  // Tries those of PIDS whose interpreter was not ready at the first check.
  void retry(const std::vector<base::Pid>& pids);
  // Readable (poll(2)) if handle() has work.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  // Handles pending events; does not wait for activations.
  void handle();
  // Ends pending activations; no more follow.
  void stop();

 private:
  // A process that a thread is trying: what has happened to it in the meantime.
  struct Tried {
    bool again = false;
    bool gone = false;   // it has exited or exec'ed
    bool ended = false;  // it exited before anything was known about it
  };
  struct Seen {
    std::set<base::Pid> pythons;     // processes with an interpreter
    std::set<base::Pid> unsettled;   // of these: not yet known whether they get activated
    std::set<base::Pid> candidates;  // to be tried once all pending events are handled
    std::map<base::Pid, Tried> trying;
    // The interpreter is still starting. True: the watch reports when it is ready.
    std::map<base::Pid, bool> not_ready;
  };

  void note(const watch::ProcessEvent& event);
  void note_mapping(const watch::ProcessEvent& event);
  void note_interpreter(base::Pid pid);
  void announce();
  void attempt(base::Pid pid);
  void end(base::Pid pid);
  void forget(base::Pid pid);
  void take_results();
  void settle(base::Pid pid, LateArrival arrival);
  void set_timer();

  std::unique_ptr<watch::ProcessWatch> watch_;
  python::Detector& detector_;
  Manager& manager_;
  TargetSet& target_set_;
  ArrivalListener listener_;
  base::UniqueFd timer_;    // for processes whose readiness no event reports
  base::UniqueFd results_;  // an eventfd: a thread has a result
  base::UniqueFd epoll_;
  Seen seen_;
  bool timer_runs_ = false;
  base::Pid left_out_;
  ActivationThreads threads_;
  FileJudge judge_;
};

}  // namespace pyinject::targets
