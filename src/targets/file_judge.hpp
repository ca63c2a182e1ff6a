// Finds out whether files that processes have mapped hold a CPython, in a separate thread if
// possible.
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

namespace pyinject::targets {

// Not thread-safe. Processes take turns, so that one that maps many files does not delay the
// others; the first 4096 unanswered questions of each process are kept.
class FileJudge {
 public:
  // One per process at a time, and only for processes with a file that may hold an interpreter.
  struct Answer {
    base::Pid pid;
    bool ended = false;  // the process had exited, according to ended()
  };

  // The thread calls ANSWERED when take() has an answer.
  FileJudge(python::Detector& detector, std::function<void()> answered)
      : detector_{detector}, answered_{std::move(answered)} {}
  ~FileJudge() { stop(); }
  FileJudge(const FileJudge&) = delete;
  FileJudge& operator=(const FileJudge&) = delete;

  void ask(base::Pid pid, const procfs::FileIdentity& file, const std::string& path);
  // PID has exited: its pending questions get at most one answer.
  void ended(base::Pid pid);
  // PID exec'ed: drops its pending questions.
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
  // Call it with mutex_ held.
  void answer(base::Pid pid, bool ended);

  python::Detector& detector_;
  std::function<void()> answered_;
  base::Cancellation ending_;
  std::mutex mutex_;  // protects all members below except thread_
  std::condition_variable wake_;
  std::map<base::Pid, std::deque<Question>> questions_;
  base::Pid judged_;  // the process of the file being examined; 0: none
  bool judged_ended_ = false;
  bool judged_dropped_ = false;
  std::vector<Answer> answers_;
  std::thread thread_;
};

}  // namespace pyinject::targets
