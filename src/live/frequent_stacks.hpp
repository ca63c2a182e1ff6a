// The most frequent stacks of a live profile. Their number is limited: rare ones are forgotten.
#pragma once

#include "live/row_id.hpp"
#include "sample/stack.hpp"

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

namespace pyinject::live {

class FrequentStacks {
 public:
  // FRAMES: those of STACK as Names::known_as(), perhaps with the parents of a greenlet. TASK: 0 if
  // it has none. C_FUNCTION: that ran; 0: none.
  void add(const sample::Stack& stack, std::uint64_t task, std::vector<sample::Frame> frames,
           std::uint64_t count, std::uint64_t c_function = 0);
  // The numbers of tasks until now are void.
  void forget_tasks();
  void clear() { stacks_.clear(); }

  using Matches = std::function<bool(std::uint64_t id)>;
  // The frames of the most frequent one with a row of VIEW that MATCHES, innermost first; empty:
  // none. Of the C functions of a stack, the first sixteen count.
  [[nodiscard]] std::vector<sample::Frame> most_frequent_with(View view,
                                                              const Matches& matches) const;

 private:
  struct KnownStack {
    std::vector<sample::Frame> frames;
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint64_t task = 0;
    std::uint64_t count = 0;
    std::vector<std::uint64_t> c_functions;
  };
  [[nodiscard]] static bool has(const KnownStack& stack, View view, const Matches& matches);

  std::unordered_map<std::uint64_t, KnownStack> stacks_;  // by their hash
};

}  // namespace pyinject::live
