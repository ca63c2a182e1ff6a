// Looks into files that processes have mapped, in a thread of its own if one can be made: is there
// a CPython in them?
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/procfs/file_identity.hpp"
#include "pyinject/python/detector.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace pyinject::session {

// All functions are of one thread. Processes take turns, so that one that maps many files does not
// keep the others waiting; of each process the first 4096 unanswered questions are kept.
class FileJudge {
 public:
  // One for a process at a time, and only of those with a file that may hold an interpreter.
  struct Answer {
    base::Pid pid;
    bool ended = false;  // the process had, by ended()
  };

  // ANSWERED is called by the thread when there is an answer to take().
  FileJudge(python::Detector& detector, std::function<void()> answered)
      : detector_{detector}, answered_{std::move(answered)} {}
  ~FileJudge() { stop(); }
  FileJudge(const FileJudge&) = delete;
  FileJudge& operator=(const FileJudge&) = delete;

  void ask(base::Pid pid, const procfs::FileIdentity& file, const std::string& path);
  // PID has ended: what is still unanswered of it is answered once at most.
  void ended(base::Pid pid);
  // PID runs another program: what is unanswered of it is dropped.
  void forget(base::Pid pid);
  [[nodiscard]] std::vector<Answer> take();
  void stop();

 private:
  struct Question {
    procfs::FileIdentity file;
    std::string path;
    bool ended = false;
  };
  void work();
  [[nodiscard]] bool may_hold_interpreter(base::Pid pid, const Question& question);
  // With mutex_ held.
  void answer(base::Pid pid, bool ended);

  python::Detector& detector_;
  std::function<void()> answered_;
  base::Cancellation ending_;
  std::mutex mutex_;  // of all below but thread_
  std::condition_variable wake_;
  std::map<base::Pid, std::deque<Question>> questions_;
  base::Pid judged_;  // whose file is being looked into; 0: nobody's
  bool judged_ended_ = false;
  bool judged_dropped_ = false;
  std::vector<Answer> answers_;
  std::thread thread_;
};

}  // namespace pyinject::session
