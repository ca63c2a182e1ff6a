// Reads the Python frames that targets have had since before they were activated, again and again
// while they are recorded.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/targets/manager.hpp"
#include "weave/frame_history.hpp"
#include "weave/weave.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

namespace pyinject::session {

class FrameWatch {
 public:
  // CLOCK: that of the recording; nullopt: it cannot be read, so only what was there at the
  // activation is known.
  FrameWatch(base::Logger& logger, std::optional<clockid_t> clock)
      : logger_{logger}, clock_{clock} {}
  ~FrameWatch() { stop(); }
  FrameWatch(const FrameWatch&) = delete;
  FrameWatch& operator=(const FrameWatch&) = delete;

  // The target has just been activated. Its threads are read without being stopped; and then again
  // and again by a thread of its own: at first many times, since most of the functions that run
  // just then return at once, and soon 20 times a second. Less often if it would take more than 0.5
  // % of a processor.
  void add(const ActiveTarget& active);
  // PID has ended, or runs another program: it is read no more. What was learned stays.
  void forget(base::Pid pid);
  // Ends the thread; what was learned stays. To be called before history().
  void stop();

  [[nodiscard]] weave::FrameHistory& history() { return history_; }
  [[nodiscard]] const std::unordered_map<std::uint32_t, std::vector<weave::AddressRange>>&
  evaluators() const {
    return evaluators_;
  }
  // What an entry frame of any of them looks like on the C stack.
  [[nodiscard]] static std::vector<weave::EntryFrame> entry_frames();
  struct Effort {
    std::uint64_t rounds = 0;
    std::chrono::nanoseconds processor_time{};
  };
  [[nodiscard]] Effort effort() const { return effort_; }
  // Threads that were in Python functions when their process was added, and of which no stack could
  // be read since. To be called after stop().
  [[nodiscard]] std::size_t unknown_threads() const;

 private:
  void run();
  void look();
  [[nodiscard]] std::chrono::nanoseconds next_pause();

  base::Logger& logger_;
  std::optional<clockid_t> clock_;
  std::mutex mutex_;  // of all below but thread_
  std::condition_variable wake_;
  bool ending_ = false;
  struct Watched {
    python::StackReader reader;
    bool first = false;                // activation in the life of the process
    std::set<base::Tid> unknown = {};  // threads of which no stack could be read yet
    std::set<base::Tid> partial = {};  // threads of which only outer frames could
  };
  void forget_watched(std::uint32_t pid);
  void look_at(std::uint32_t pid, Watched& watched);
  void begin(std::uint32_t pid, Watched& watched, const python::ThreadStack& stack);
  void learn(std::uint32_t pid, Watched& watched, const python::ThreadStack& stack);
  void name(std::uint32_t pid, const Watched& watched, const python::ThreadStack& stack);
  std::map<std::uint32_t, Watched> watched_;
  std::size_t unknown_threads_ = 0;  // of processes that are read no more
  weave::FrameHistory history_;
  std::unordered_map<std::uint32_t, std::vector<weave::AddressRange>> evaluators_;
  Effort effort_;
  std::chrono::nanoseconds pause_{};
  std::chrono::steady_clock::time_point began_;
  std::thread thread_;
};

}  // namespace pyinject::session
