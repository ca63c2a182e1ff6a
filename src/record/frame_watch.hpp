// Repeatedly reads the Python frames that targets entered before their activation, while they are
// recorded.
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

namespace pyinject::record {

class FrameWatch {
 public:
  // CLOCK: that of the recording; nullopt: unreadable, so that only the frames at the activation
  // are known.
  FrameWatch(base::Logger& logger, std::optional<clockid_t> clock)
      : logger_{logger}, clock_{clock} {}
  ~FrameWatch() { stop(); }
  FrameWatch(const FrameWatch&) = delete;
  FrameWatch& operator=(const FrameWatch&) = delete;

  // Call it when the target has just been activated. Reads its threads without stopping them, and
  // again periodically from a separate thread: at first at short intervals, since most of the
  // running functions return soon, later 20 times a second. Less often if it would take more than
  // 0.5 % of a processor, not counting a few looks at suspended greenlets.
  void add(const targets::ActiveTarget& active);
  // Only for interpreters(): a target without functions that were entered before its activation.
  void know(const targets::ActiveTarget& active);
  // PID has exited or exec'ed: it is not read any more. Learned frames are kept.
  void forget(base::Pid pid);
  // Ends the thread; learned frames are kept. Call it before history().
  void stop();

  [[nodiscard]] weave::FrameHistory& history() { return history_; }
  // Of the targets that were added.
  [[nodiscard]] const weave::Interpreters& interpreters() const { return interpreters_; }
  // What an entry frame looks like on the C stack, for each supported layout.
  [[nodiscard]] static std::vector<weave::EntryFrame> entry_frames();
  struct Effort {
    std::uint64_t rounds = 0;
    std::chrono::nanoseconds processor_time{};
  };
  [[nodiscard]] Effort effort() const { return pace_.effort; }
  // Threads that were in Python functions when their process was added, and whose stack has never
  // been readable. Call it after stop().
  [[nodiscard]] std::size_t unknown_threads() const;

 private:
  void run();
  void look();
  [[nodiscard]] std::chrono::nanoseconds next_pause();

  base::Logger& logger_;
  std::optional<clockid_t> clock_;
  std::mutex mutex_;  // protects all members below except thread_
  std::condition_variable wake_;
  bool ending_ = false;
  struct Watched {
    python::Target target;
    python::StackReader reader;
    bool first = false;       // first activation of the program
    std::uint64_t begun = 0;  // about when, by the recording's clock; 0: unknown
    // Added to READER's numbers of code objects: those of a pid's next program are others.
    std::uint64_t first_code = 0;
    std::set<base::Tid> unknown = {};  // threads without any readable stack so far
    std::set<base::Tid> partial = {};  // threads with only outer frames readable so far
    bool greenlets = false;            // it has mapped greenlet's module
    std::uint64_t looks_at_suspended = 0;
    std::chrono::steady_clock::time_point next_look_for_greenlets = {};
  };
  // nullptr: TARGET has executed another program. Valid until the next call.
  const weave::Interpreter* know_interpreter(const python::Target& target);
  void forget_watched(std::uint32_t pid);
  void look_at(std::uint32_t pid, Watched& watched);
  void begin(std::uint32_t pid, Watched& watched, const python::ThreadStack& stack);
  void learn(std::uint32_t pid, Watched& watched, const python::ThreadStack& stack);
  [[nodiscard]] static bool has_greenlets(std::uint32_t pid, Watched& watched);
  void look_at_suspended(std::uint32_t pid, Watched& watched);
  void name(std::uint32_t pid, const Watched& watched, const python::ThreadStack& stack);
  std::map<std::uint32_t, Watched> watched_;
  std::uint64_t targets_added_ = 0;
  std::size_t unknown_threads_ = 0;  // of processes that are not read any more
  weave::FrameHistory history_;
  weave::Interpreters interpreters_;
  struct {
    Effort effort;
    std::chrono::nanoseconds for_suspended{};  // processor time for looks at suspended greenlets
    std::chrono::nanoseconds exempt{};         // the part of it that EFFORT has
    std::chrono::nanoseconds pause{};
    std::chrono::steady_clock::time_point began;
  } pace_;
  std::thread thread_;
};

}  // namespace pyinject::record
