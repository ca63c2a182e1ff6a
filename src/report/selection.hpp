// The samples that a view is about, summed up by event, thread and stack, with what each stack
// says.
#pragma once

#include "pyinject/report/profile.hpp"
#include "report/machinery.hpp"
#include "report/marks.hpp"
#include "report/view_options.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace pyinject::report {

// Samples that differ only in their times.
struct Slice {
  std::uint32_t stack = 0;
  std::uint32_t event = 0;
  std::uint32_t thread = 0;
  sample::Does does = sample::Does::kUnknown;
  std::uint64_t samples = 0;
  std::uint64_t weight =
      0;  // in the unit of tables: the number of samples, or nanoseconds of waits
  std::uint64_t period = 0;  // sum of the periods
};

// What a row is called.
struct RowKey {
  std::string name;
  std::string file{};
  std::uint32_t line = 0;  // 0: unknown, or none
  auto operator<=>(const RowKey&) const = default;
};

// What a stack says, whichever thread has it. Rows: numbers of RowNames.
struct StackFacts {
  bool admitted = true;
  Leaf leaf = Leaf::kNative;  // of the slice
  Marks marks{};
  std::vector<std::uint32_t> frames{};  // innermost first, without marks
  std::vector<std::uint32_t> path{};    // rows of its functions, innermost first
  std::vector<std::uint32_t> all{};     // the same, each once
  std::optional<std::uint32_t> self{};  // nullopt: it has no function with a row
};

// Numbers the rows of functions, or of their lines.
class RowNames {
 public:
  RowNames(const Profile& profile, const ViewOptions& options, bool lines);
  // The row of a frame; nullopt: it has none.
  [[nodiscard]] std::optional<std::uint32_t> row_of(std::uint32_t frame);
  [[nodiscard]] const RowKey& key(std::uint32_t row) const { return keys_[row]; }
  // Whether FRAME is of a Python function below --mine.
  [[nodiscard]] bool is_mine(std::uint32_t frame) const;

 private:
  [[nodiscard]] bool has_row(const Function& function) const;

  const Profile& profile_;
  const ViewOptions& options_;
  bool lines_;
  std::vector<std::uint32_t> known_;  // by frame: 0: not asked for yet, 1: none, else the row + 2
  std::map<RowKey, std::uint32_t> rows_;
  std::vector<RowKey> keys_;
};

class Selection {
 public:
  // LINES: rows are lines of functions. OPTIONS must outlive this object, as PROFILE.
  Selection(const Profile& profile, const ViewOptions& options, bool lines = false);

  // Whether the filters leave SAMPLE, apart from those that ask for its stack.
  [[nodiscard]] bool admits(const Sample& sample) const;
  [[nodiscard]] StackFacts facts_of(std::uint32_t stack,
                                    sample::Does does = sample::Does::kUnknown);
  // Visits all admitted samples. Slices of one stack follow each other.
  void visit(const std::function<void(const Slice&, const StackFacts&)>& take);
  [[nodiscard]] const RowKey& key(std::uint32_t row) const { return names_.key(row); }

 private:
  [[nodiscard]] std::vector<Slice> slices() const;
  void choose_rows(StackFacts& facts);
  void choose_imports(StackFacts& facts);

  const Profile& profile_;
  const ViewOptions& options_;
  std::uint64_t first_ = 0;
  RowNames names_;
  Leaves leaves_;
  std::vector<bool> asked_for_;  // by function: has the name of --function; empty: all
};

}  // namespace pyinject::report
