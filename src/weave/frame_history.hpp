// The frames that were on the stacks when the trampoline was switched on, and until when: a
// StackSource for what has no trampoline.
#pragma once

#include "weave/python_stacks.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::weave {

class FrameHistory : public StackSource {
 public:
  // A thread as it was right after the activation. FRAMES: innermost first. FIRST: it was the first
  // one in the life of the process, so no frame of before has a trampoline.
  void begin(std::uint32_t pid, std::uint32_t tid, std::vector<PythonFrame> frames, bool first);
  // FRAMES of the same thread later, in the order of time: which of the first ones are left, and at
  // which lines. Frames that were entered since then are passed over. INNER_UNKNOWN: there may be
  // more frames inside FRAMES; then the observation counts only if all that were left are in it.
  void observe(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
               const std::vector<PythonFrame>& frames, bool inner_unknown = false);
  // FRAMES of the same thread later, when begin() was given only the outermost ones of its stack:
  // those inside them are taken to have been there from the beginning. at() ignores frames that
  // have got trampolines since. An observation, where some of the first frames have returned.
  void extend(std::uint32_t pid, std::uint32_t tid, std::uint64_t time,
              const std::vector<PythonFrame>& frames, bool inner_unknown = false);
  void name(std::uint32_t pid, std::uint64_t code, CodeName name);

  [[nodiscard]] PythonStack at(const StackQuery& query) override;
  [[nodiscard]] const CodeName* name(std::uint32_t pid, std::uint64_t code) const override;
  void each_name(const std::function<void(const CodeName& name, std::uint32_t last_line)>& call)
      const override;
  [[nodiscard]] bool has_every_sample() const override { return false; }

  // The threads of PID of which some frames are left, so far as is known.
  [[nodiscard]] std::vector<std::uint32_t> threads(std::uint32_t pid) const;
  [[nodiscard]] bool empty() const { return threads_.empty(); }

 private:
  struct Observation {
    std::uint64_t time = 0;
    std::uint32_t left = 0;
    bool new_lines = false;  // other ones than at the observation before
  };
  struct LineSince {
    std::size_t observation = 0;  // the first at which the frame is at this line
    std::uint32_t line = 0;
  };
  struct Thread {
    std::vector<PythonFrame> frames;  // outermost first, as they were at the beginning
    std::vector<Observation> observations;
    std::vector<std::vector<LineSince>> lines;  // of each frame, those that it has come to since
    bool first = false;
  };
  struct Moment {
    std::size_t left = 0;
    std::size_t observations = 0;  // up to this moment
  };
  [[nodiscard]] Moment moment_of(const Thread& thread, const StackQuery& query) const;
  // So many groups of the first LEFT frames begin with the functions whose trampolines the
  // callchain has at their places: with the next one the stack had become another one.
  [[nodiscard]] std::size_t agreeing_groups(const std::vector<PythonFrame>& frames,
                                            std::size_t left, const StackQuery& query) const;
  [[nodiscard]] static std::uint32_t line_at(const Thread& thread, std::size_t frame,
                                             std::size_t observations);

  std::map<std::pair<std::uint32_t, std::uint32_t>, Thread> threads_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, CodeName> names_;
};

}  // namespace pyinject::weave
