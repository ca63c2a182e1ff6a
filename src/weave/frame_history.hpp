// The frames that were on the stacks when the trampoline was switched on, and how long they stayed:
// a StackSource for code without a trampoline.
#pragma once

#include "weave/python_stacks.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::weave {

class FrameHistory : public StackSource {
 public:
  // State of a thread right after the activation, at BEGUN (0: unknown). FRAMES: innermost first.
  // FIRST: the first activation of the program, so that no older frame has a trampoline. A process
  // that executes another program may be activated again: frames are those of the program that ran.
  void begin(std::uint32_t pid, std::uint32_t tid, std::vector<sample::Frame> frames, bool first,
             std::uint64_t begun = 0);
  // FRAMES of the same thread at a later time; calls must be in order of time. Records which of the
  // first frames are left, and at which lines; ignores frames entered since. INNER_UNKNOWN: there
  // may be more frames inside FRAMES; the observation then counts only if it contains all frames
  // that were left.
  void observe(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
               const std::vector<sample::Frame>& frames, bool inner_unknown = false);
  // Like observe(), if begin() got only the outermost frames of the stack: assumes that the frames
  // inside them have been there from the beginning. at() ignores frames that have got trampolines
  // since. If some of the first frames have returned, this is an observation.
  void extend(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
              const std::vector<sample::Frame>& frames, bool inner_unknown = false);
  void name(std::uint32_t pid, sample::Code code);
  // From now on, frames whose outermost one differs from that of begin() are those of another
  // greenlet: observe() and extend() keep them apart.
  void expect_greenlets(std::uint32_t pid) { greenlets_.insert(pid); }
  // FRAMES of a greenlet of the thread that was suspended. None of them is outermost, since it is
  // not known which ones share an activation of the evaluator.
  void keep_suspended(std::uint32_t pid, std::uint32_t tid,
                      const std::vector<sample::Frame>& frames);
  // Whether the outermost of FRAMES is another one than at begin().
  [[nodiscard]] bool is_other(std::uint32_t pid, std::uint32_t tid,
                              const std::vector<sample::Frame>& frames) const;

  [[nodiscard]] sample::Stack at(const StackQuery& query) override;
  [[nodiscard]] const sample::Code* name(std::uint32_t pid, std::uint64_t code) const override;
  void each_name(const std::function<void(const sample::Code& name, std::uint32_t last_line)>& call)
      const override;
  [[nodiscard]] bool has_every_sample() const override { return false; }

  // Threads of PID that still have some of the frames, as far as known.
  [[nodiscard]] std::vector<std::uint32_t> threads(std::uint32_t pid) const;
  [[nodiscard]] bool empty() const { return threads_.empty(); }

 private:
  struct Observation {
    std::uint64_t time = 0;
    std::uint32_t left = 0;
    bool new_lines = false;  // differ from those of the previous observation
  };
  struct LineSince {
    std::size_t observation = 0;  // the first with the frame at this line
    std::uint32_t line = 0;
  };
  struct Thread {
    std::vector<sample::Frame> frames;  // outermost first, as at the beginning
    std::vector<Observation> observations;
    std::vector<std::vector<LineSince>> lines;  // per frame: its later lines
    bool first = false;
    std::uint64_t begun = 0;
    // Frames of other greenlets, outermost first, as when they were first seen, by the address of
    // the outermost one.
    std::map<std::uint64_t, std::vector<sample::Frame>> others;
    // The same address, by those of all its frames. A frame from before the attach has its address
    // for itself.
    std::unordered_map<std::uint64_t, std::uint64_t> other_of;
  };
  static constexpr std::size_t kMostOthers = 1024;       // of a thread
  static constexpr std::size_t kMostOtherFrames = 1024;  // of one of them, the outermost
  void keep_other(std::uint32_t pid, Thread& thread, const std::vector<sample::Frame>& frames);
  static void keep(Thread& thread, std::vector<sample::Frame> other);
  [[nodiscard]] sample::Stack at_greenlet(const Thread& thread, const StackQuery& query) const;
  // Whether the thread itself, rather than a greenlet, begins with the outermost of FRAMES.
  [[nodiscard]] bool begins_thread(std::uint32_t pid,
                                   const std::vector<sample::Frame>& frames) const;
  [[nodiscard]] sample::Stack at_thread(const Thread& thread, const StackQuery& query) const;
  struct Moment {
    std::size_t left = 0;
    std::size_t observations = 0;  // up to this moment
  };
  [[nodiscard]] Moment moment_of(const Thread& thread, const StackQuery& query) const;
  // Number of groups of the first LEFT frames which begin with the functions that have trampolines
  // at their places in the callchain: at the next group the stack differs.
  [[nodiscard]] std::size_t agreeing_groups(const std::vector<sample::Frame>& frames,
                                            std::size_t left, const StackQuery& query) const;
  [[nodiscard]] static std::uint32_t line_at(const Thread& thread, std::size_t frame,
                                             std::size_t observations);

  // nullptr: not begun.
  [[nodiscard]] Thread* latest(std::uint32_t pid, std::uint32_t tid);
  [[nodiscard]] const Thread* latest(std::uint32_t pid, std::uint32_t tid) const;
  // Of the program that ran when QUERY's sample was taken; nullptr: its frames are unknown.
  [[nodiscard]] const Thread* thread_at(const StackQuery& query) const;

  // One for each activation, in order of time.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Thread>> threads_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, sample::Code> names_;
  std::set<std::uint32_t> greenlets_;  // pids of processes that switch greenlets
};

}  // namespace pyinject::weave
