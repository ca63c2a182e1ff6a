// The Python stacks that were read at the samples themselves, one for each: a StackSource that
// knows all frames of its threads.
#pragma once

#include "base/budget.hpp"
#include "weave/python_stacks.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::weave {

// Fed from one thread while it is recorded, and read by weave() when that is over: nothing is
// locked. Equal stacks are kept once, and of those that differ what they share from the root on.
class SampledStacks : public StackSource {
 public:
  enum class Matching : std::uint8_t {
    kExact,  // by the sample's own time
    // By the nearest time within 25 us, each record for one sample: kernels that do not fill in a
    // sample's time before they run the program. The clock has to be that of the recording.
    kNearest,
  };
  // What stacks take beyond the time of each is charged to BUDGET's bytes, and to their process.
  explicit SampledStacks(
      Matching matching = Matching::kExact,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>())
      : matching_{matching}, budget_{std::move(budget)} {}
  void match(Matching matching) { matching_ = matching; }

  // STACK is taken as whole; the `activation` of its frames does not matter.
  void add(std::uint32_t pid, std::uint32_t tid, std::uint64_t time, const PythonStack& stack);
  // Codes are of no process: no two have the same number.
  void name(std::uint64_t code, CodeName name);

  [[nodiscard]] PythonStack at(const StackQuery& query) override;
  [[nodiscard]] const CodeName* name(std::uint32_t pid, std::uint64_t code) const override;
  void each_name(const std::function<void(const CodeName& name, std::uint32_t last_line)>& call)
      const override;
  [[nodiscard]] bool has_every_sample() const override { return true; }

  [[nodiscard]] bool empty() const { return records_ == 0; }
  [[nodiscard]] std::uint64_t records() const { return records_; }
  // Processes that have used up their share, and how many of their stacks have no frames.
  [[nodiscard]] const std::map<std::uint32_t, std::uint64_t>& emptied() const { return emptied_; }
  // The times of the first and the last one.
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t last() const { return last_; }
  // Samples that were asked for and have a record.
  [[nodiscard]] std::uint64_t matched() const { return matched_; }
  // Those of them that ran Python.
  [[nodiscard]] std::uint64_t with_frames() const { return with_frames_; }
  // What all this takes, about.
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kRoot = 0xffffffff;

  struct Node {  // a frame and all that called it
    std::uint64_t code = 0;
    std::uint32_t caller = kRoot;
    std::uint32_t line = 0;
    bool outermost = false;
    bool operator==(const Node&) const = default;
  };
  struct NodeHash {
    std::size_t operator()(const Node& node) const;
  };
  struct Entry {
    std::uint64_t time = 0;
    std::uint32_t innermost = kRoot;
    std::uint32_t task = 0;
    std::uint32_t pid = 0;
    GilState gil = GilState::kUnknown;
    bool truncated = false;
    bool used = false;
  };
  struct Code {
    CodeName name;
    bool named = false;
    std::uint32_t last_line = 0;
  };
  [[nodiscard]] Entry* find(const StackQuery& query);

  // False: it takes too much.
  [[nodiscard]] bool keep_frames(std::uint32_t pid, const PythonStack& stack, Entry& entry);

  Matching matching_;
  std::shared_ptr<base::RecordingBudget> budget_;
  std::map<std::uint32_t, std::uint64_t> emptied_;
  std::vector<Node> nodes_;
  std::unordered_map<Node, std::uint32_t, NodeHash> known_;
  std::vector<std::string> tasks_{std::string{}};
  std::unordered_map<std::string, std::uint32_t> known_tasks_;
  std::unordered_map<std::uint32_t, std::vector<Entry>> threads_;  // by tid, in the order of time
  std::unordered_map<std::uint64_t, Code> codes_;
  std::uint64_t records_ = 0;
  std::uint64_t first_ = ~std::uint64_t{0};
  std::uint64_t last_ = 0;
  std::uint64_t matched_ = 0;
  std::uint64_t with_frames_ = 0;
};

}  // namespace pyinject::weave
