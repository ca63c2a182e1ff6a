// Python stacks that were read at the samples themselves, one per sample: a StackSource that knows
// all frames of its threads.
#pragma once

#include "base/budget.hpp"
#include "base/numbered.hpp"
#include "pyinject/weave/weave_summary.hpp"
#include "weave/python_stacks.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::weave {

// One thread adds stacks during the recording; weave() reads them afterwards: no locks. Equal
// stacks are stored once; different stacks share their common part at the root.
class SampledStacks : public StackSource {
 public:
  enum class Matching : std::uint8_t {
    kExact,  // by the sample's timestamp
    // By the nearest timestamp, up to 2 ms before the sample's or 25 us after it; each record for
    // one sample. For kernels that run the program before they set a sample's timestamp: the
    // difference is the time that the program takes, more in an emulated machine. Needs the clock
    // of the recording.
    kNearest,
  };
  // Memory for stacks, except their timestamps, is charged to BUDGET's bytes and to their process.
  explicit SampledStacks(
      Matching matching = Matching::kExact,
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>())
      : matching_{matching}, budget_{std::move(budget)} {}
  void match(Matching matching) { matching_ = matching; }
  // Some records were dropped: a sample's own may be missing where an earlier one of its thread is
  // not.
  void some_are_lost() { some_lost_ = true; }

  // STACK counts as whole; the `activation` of its frames is ignored.
  void add(const sample::Stack& stack);
  // Code numbers are unique across processes.
  void name(sample::Code code);

  [[nodiscard]] sample::Stack at(const StackQuery& query) override;
  [[nodiscard]] NativeStack native_at(const StackQuery& query) override;
  [[nodiscard]] const sample::Code* name(std::uint32_t pid, std::uint64_t code) const override;
  void each_name(const std::function<void(const sample::Code& name, std::uint32_t last_line)>& call)
      const override;
  [[nodiscard]] bool has_every_sample() const override { return true; }

  [[nodiscard]] bool empty() const { return records_ == 0; }
  [[nodiscard]] std::uint64_t records() const { return records_; }
  // Stacks stored without Python or C frames because their process hit its budget.
  [[nodiscard]] std::vector<Dropped> dropped() const;
  // Times of the first and the last record.
  [[nodiscard]] std::uint64_t first() const { return first_; }
  [[nodiscard]] std::uint64_t last() const { return last_; }
  // Samples for which at() has found a record.
  struct Matches {
    std::uint64_t all = 0;          // of processes whose Python stacks are read
    std::uint64_t with_frames = 0;  // the record has frames
    std::uint64_t no_state = 0;     // of ALL: a thread unknown to CPython
    std::uint64_t no_frames = 0;    // of ALL: a thread that CPython knows, and that ran no Python
  };
  [[nodiscard]] const Matches& matches() const { return matches_; }
  // Approximate memory use.
  [[nodiscard]] std::size_t bytes() const;

 private:
  static constexpr std::uint32_t kRoot = 0xffffffff;

  struct Node {  // a frame and all its callers
    std::uint64_t code = 0;
    std::uint32_t caller = kRoot;
    std::uint32_t line = 0;
    bool outermost = false;
    bool operator==(const Node&) const = default;
  };
  struct NodeHash {
    std::size_t operator()(const Node& node) const;
  };
  struct NativeNode {  // a C function and all its callers
    std::uint64_t address = 0;
    std::uint32_t caller = kRoot;
    bool operator==(const NativeNode&) const = default;
  };
  struct NativeNodeHash {
    std::size_t operator()(const NativeNode& node) const;
  };
  struct Entry {
    std::uint64_t time = 0;
    std::uint32_t innermost = kRoot;
    std::uint32_t native = kRoot;
    std::uint32_t task = 0;
    std::uint32_t pid = 0;
    sample::Gil gil = sample::Gil::kUnknown;
    sample::Does does = sample::Does::kUnknown;
    bool truncated = false;
    bool ungrouped = false;
    bool used = false;
    bool observed = true;
    bool python_thread = true;
    bool idle = false;  // in no Python function
    bool traced = false;
    sample::NativeEnd native_end = sample::NativeEnd::kNotRead;
  };
  struct Code {
    std::optional<sample::Code> known;
    std::uint32_t last_line = 0;
  };
  [[nodiscard]] Entry* find(const StackQuery& query);
  [[nodiscard]] Entry* find_before(std::vector<Entry>& entries, const StackQuery& query) const;

  // False: exceeds the limit.
  [[nodiscard]] bool keep_frames(const sample::Stack& stack, Entry& entry);
  [[nodiscard]] bool keep_native(const sample::Stack& stack, Entry& entry);

  Matching matching_;
  bool some_lost_ = false;
  std::shared_ptr<base::RecordingBudget> budget_;
  std::map<std::pair<std::uint32_t, Limit>, std::uint64_t> emptied_;  // by pid
  base::Numbered<Node, std::unordered_map<Node, std::uint32_t, NodeHash>> nodes_;
  base::Numbered<NativeNode, std::unordered_map<NativeNode, std::uint32_t, NativeNodeHash>>
      native_nodes_;
  base::Numbered<std::string> tasks_;
  std::unordered_map<std::uint32_t, std::vector<Entry>> threads_;  // by tid, in order of time
  std::unordered_map<std::uint64_t, Code> codes_;
  std::uint64_t records_ = 0;
  std::uint64_t first_ = ~std::uint64_t{0};
  std::uint64_t last_ = 0;
  Matches matches_;
};

}  // namespace pyinject::weave
