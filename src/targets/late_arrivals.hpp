// Python processes that appear, or become one, while a recording goes on.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/scope.hpp"
#include "pyinject/watch/process_watch.hpp"
#include "targets/file_judge.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace pyinject::session {

struct ArrivalListener {
  // By a process that runs Python: it does, too, and is on if that was.
  std::function<void(base::Pid child)> forked;
  // A process that ran Python has ended, or runs another program. ACTIVE: what it was, if it was a
  // target.
  std::function<void(base::Pid pid, std::shared_ptr<const ActiveTarget> active)> ended;
};

// All functions are of one thread; the activations are made by threads of its own.
class LateArrivals {
 public:
  // POPULATION: who is meant. From here on nobody is missed.
  LateArrivals(std::unique_ptr<watch::ProcessWatch> watch, python::Detector& detector,
               Manager& manager, base::Logger& logger, TargetSet& target_set,
               ArrivalListener listener);
  ~LateArrivals() { stop(); }
  LateArrivals(const LateArrivals&) = delete;
  LateArrivals& operator=(const LateArrivals&) = delete;

  // PID is ours: perf has an interpreter for its scripts.
  void ignore(base::Pid pid) { left_out_ = pid; }
  // PIDS are known to run Python: what they fork does, too.
  void add_known(const std::vector<base::Pid>& pids);
  // Tries those of PIDS whose interpreter was not ready at the first look.
  void retry(const std::vector<base::Pid>& pids);
  // Readable (poll(2)) when handle() has something to do.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  // Takes what has happened; does not wait for activations.
  void handle();
  // Activations under way end; then there are no more.
  void stop();

 private:
  // One that a thread is trying: what has happened to it meanwhile.
  struct Tried {
    bool again = false;
    bool gone = false;   // it has ended, or runs another program
    bool ended = false;  // before anything was known of it
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
  void add_threads();
  void work();

  std::unique_ptr<watch::ProcessWatch> watch_;
  python::Detector& detector_;
  Manager& manager_;
  base::Logger& logger_;
  TargetSet& target_set_;
  ArrivalListener listener_;
  base::UniqueFd timer_;    // for those that no event announces
  base::UniqueFd results_;  // an eventfd: a thread has put something into done_
  base::UniqueFd epoll_;
  std::set<base::Pid> pythons_;     // run a program with an interpreter in it
  std::set<base::Pid> unsettled_;   // of these: whether they are activated is not known yet
  std::set<base::Pid> candidates_;  // to be tried when all that has happened is known
  std::map<base::Pid, Tried> trying_;
  // The interpreter is being started. True: the watch tells when it is ready.
  std::map<base::Pid, bool> not_ready_;
  bool timer_runs_ = false;
  base::Pid left_out_;

  std::mutex mutex_;  // of all below but threads_
  std::condition_variable wake_;
  bool ending_ = false;
  std::deque<base::Pid> queue_;
  std::vector<std::pair<base::Pid, LateArrival>> done_;
  std::vector<std::thread> threads_;
  FileJudge judge_;
};

}  // namespace pyinject::session
