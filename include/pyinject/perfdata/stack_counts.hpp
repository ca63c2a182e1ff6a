// Of what kind the stacks of a recording's samples are: each sample of a recorded process counts
// once.
//
// For example:
//   perfdata::StackCounts counts;
//   counts.add(perfdata::StackKind::kComplete);
//   std::cout << perfdata::incompleteness(counts);  // nothing: all are complete
#pragma once

#include "pyinject/version.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pyinject::perfdata {

enum class StackKind : std::uint8_t {
  kComplete,      // shows all Python functions
  kNoPython,      // the thread ran no Python
  kCut,           // lacks its outer end; a mark at the root says why
  kUnnamed,       // has Python functions without names; marked, too
  kUnread,        // its Python functions could not be read, or their record was lost
  kBeforeAttach,  // was taken before Python stacks were read, or afterwards
  kLaterProgram,  // the process ran another program by then
  kOtherProgram,  // of another program that a recorded process has started
};
inline constexpr std::size_t kStackKinds = 8;

// A stable name: "complete", "no_python", "cut", "unnamed", "unread", "before_attach",
// "later_program", "other_program".
[[nodiscard]] std::string_view name(StackKind kind);

struct StackCounts {
  std::array<std::uint64_t, kStackKinds> counts{};

  [[nodiscard]] std::uint64_t of(StackKind kind) const {
    return counts.at(static_cast<std::size_t>(kind));
  }
  void add(StackKind kind) { ++counts.at(static_cast<std::size_t>(kind)); }
  void add(const StackCounts& other);
  // Of all kinds; 0: nothing was counted.
  [[nodiscard]] std::uint64_t all() const;
  // Samples of programs that are not the recorded Python.
  [[nodiscard]] std::uint64_t of_other_programs() const {
    return of(StackKind::kLaterProgram) + of(StackKind::kOtherProgram);
  }
  bool operator==(const StackCounts&) const = default;
};

// What lacks, by kind, with remedies: "400 of a program that was executed later (record it by
// itself), 86 cut (...)". Empty: nothing.
[[nodiscard]] std::string what_lacks(const StackCounts& counts, bool marked = true);

// A sentence with it if more than 1 % of the samples lack Python functions, else empty. Samples of
// other programs that were started do not make it due: they have none. MARKED: the stacks that are
// shown have marks.
[[nodiscard]] std::string incompleteness(const StackCounts& counts, bool marked = true);

}  // namespace pyinject::perfdata
