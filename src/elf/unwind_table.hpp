// Compiles a file's unwind tables (.eh_frame) into a form in which a BPF program can look up a
// program counter. Pure.
#pragma once

#include "base/budget.hpp"
#include "elf/elf_file.hpp"
#include "elf/unwind_rule.h"
#include "pyinject/base/remote_address.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace pyinject::elf {

// The distinct rules of all compiled tables; rule 0 is UNWIND_NONE.
class UnwindRules {
 public:
  UnwindRules();

  // The number of RULE; 0: it is new, and there are too many already or the new ones of this file
  // exceed NEW_RULES.
  [[nodiscard]] std::uint16_t number_of(const unwind_rule& rule, base::Allowance& new_rules);
  [[nodiscard]] std::span<const unwind_rule> all() const { return rules_; }

 private:
  using Key = std::array<std::uint64_t, sizeof(unwind_rule) / sizeof(std::uint64_t)>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::vector<unwind_rule> rules_;
  std::unordered_map<Key, std::uint16_t, Hash> numbers_;
};

// Chunk N is the 256 bytes of code from BEGIN + 256 N on. Its rows are ROWS[INDEX[N]] up to
// ROWS[INDEX[N + 1]]; before its first row, the last one of the chunk before is in force.
struct UnwindTable {
  base::ElfAddress begin;            // a multiple of 256
  base::ElfAddress end;              // one past the last byte with information
  std::vector<std::uint32_t> index;  // one more than chunks
  std::vector<std::uint32_t> rows;   // offset in the chunk << 16 | number of the rule; ascending

  // The number of the rule for PC, as the BPF program finds it; 0: none.
  [[nodiscard]] std::uint16_t rule_at(base::ElfAddress pc) const;
};

struct UnwindTableLimits {
  base::Allowance bytes;      // of the file's tables and the compiled one together
  base::Allowance steps;      // of its programs
  base::Allowance new_rules;  // that no file had before
};

// Row for row what CallFrameInfo::row_at() computes; what a rule cannot express has rule 0.
// nullopt: FILE has no unwind tables, or they exceed LIMITS.
[[nodiscard]] std::optional<UnwindTable> compile_unwind_table(const ElfFile& file,
                                                              UnwindRules& rules,
                                                              UnwindTableLimits& limits);

}  // namespace pyinject::elf
