#include "base/byte_cursor.hpp"
#include "elf/eh_frame.hpp"
#include "elf/unwind_operations.hpp"
#include "elf/unwind_table.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace pyinject::elf {

namespace {

using Place = SavedRegister::Place;

static_assert(sizeof(unwind_rule) == 16);

constexpr std::int64_t kWord = 8;
constexpr std::uint8_t kLiteral3 = kLiteral0 + 3;
constexpr std::uint8_t kLiteral15 = kLiteral0 + 15;
constexpr std::uint8_t kRegister15 = kRegister0 + 15;
constexpr std::uint8_t kProgramCounter = kRegister0 + kReturnAddress;
constexpr std::uint64_t kChunk = std::uint64_t{1} << UNWIND_CHUNK_BITS;
constexpr unsigned kOffsetShift = 16;
constexpr std::uint64_t kStepsOfRow = 20;

bool fits_16(std::int64_t value) {
  return value >= std::numeric_limits<std::int16_t>::min() &&
         value <= std::numeric_limits<std::int16_t>::max();
}

bool fits_32(std::int64_t value) {
  return value >= std::numeric_limits<std::int32_t>::min() &&
         value <= std::numeric_limits<std::int32_t>::max();
}

// What the linkers write for the entries of a PLT:
// breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus
std::optional<unwind_rule> plt_rule(base::ByteCursor& cursor) {
  const auto pc_offset = static_cast<std::int64_t>(cursor.signed_leb());
  const bool masks =
      cursor.number<std::uint8_t>() == kLiteral15 && cursor.number<std::uint8_t>() == kAnd;
  const auto limit = cursor.number<std::uint8_t>();
  const bool compares = cursor.number<std::uint8_t>() == kGreaterOrEqual &&
                        cursor.number<std::uint8_t>() == kLiteral3 &&
                        cursor.number<std::uint8_t>() == kShiftLeft &&
                        cursor.number<std::uint8_t>() == kPlus;
  if (cursor.failed() || pc_offset != 0 || !masks || !compares || !cursor.at_end() ||
      limit < kLiteral0 || limit > kLiteral15) {
    return std::nullopt;
  }
  unwind_rule rule{};
  rule.kind = UNWIND_PLT;
  rule.addend = static_cast<std::int16_t>(limit - kLiteral0);
  return rule;
}

// The CFA by an expression.
std::optional<unwind_rule> expression_rule(Expression expression) {
  base::ByteCursor cursor{expression};
  const auto first = cursor.number<std::uint8_t>();
  const auto offset = static_cast<std::int64_t>(cursor.signed_leb());
  if (cursor.failed() || first < kRegister0 || first > kRegister15 || !fits_32(offset)) {
    return std::nullopt;
  }
  unwind_rule rule{};
  rule.base = static_cast<std::uint8_t>(first - kRegister0);
  rule.offset = static_cast<std::int32_t>(offset);
  if (cursor.at_end()) {
    rule.kind = UNWIND_CFA;
    return rule;
  }
  const auto next = cursor.number<std::uint8_t>();
  if (next == kProgramCounter && rule.base == kStackPointer && offset == kWord) {
    return plt_rule(cursor);
  }
  if (next != kDereference) {
    return std::nullopt;
  }
  rule.kind = UNWIND_CFA_AT;
  if (!cursor.at_end()) {
    const bool adds = cursor.number<std::uint8_t>() == kPlusConstant;
    const auto addend = static_cast<std::int64_t>(cursor.unsigned_leb());
    if (!adds || !fits_16(addend) || cursor.failed() || !cursor.at_end()) {
      return std::nullopt;
    }
    rule.addend = static_cast<std::int16_t>(addend);
  }
  return rule;
}

// Words from the place of a saved register up to TOP; 0: not representable.
std::uint8_t words_below(std::int64_t bytes) {
  constexpr std::int64_t kMost = 255;
  return bytes % kWord == 0 && bytes >= kWord && bytes / kWord <= kMost
             ? static_cast<std::uint8_t>(bytes / kWord)
             : std::uint8_t{0};
}

// gcc's functions with an aligned stack save registers relative to the frame pointer.
std::uint8_t words_below_fp(Expression expression) {
  base::ByteCursor cursor{expression};
  const auto base = cursor.number<std::uint8_t>();
  const auto offset = static_cast<std::int64_t>(cursor.signed_leb());
  constexpr std::int64_t kMost = 1'000'000;
  return cursor.failed() || !cursor.at_end() || base != kRegister0 + kFramePointer || offset > 0 ||
                 offset < -kMost
             ? std::uint8_t{0}
             : words_below(kWord - offset);
}

// False: the frame pointer, without which callers are lost, cannot be expressed. Other registers
// are rarely needed.
bool add_saved(const UnwindRow& row, unwind_rule& rule) {
  constexpr std::array<std::size_t, UNWIND_SAVED> kSaved{kFramePointer, 3, 12, 13, 14, 15};
  bool by_fp = false;
  bool by_cfa = false;
  for (std::size_t i = 0; i < kSaved.size(); ++i) {
    const auto& saved = row.registers[kSaved[i]];
    if (saved.place == Place::kUnchanged) {
      continue;
    }
    if (saved.place == Place::kAtCfa) {
      rule.saved[i] = saved.offset > 0 ? std::uint8_t{0} : words_below(-saved.offset);
      by_cfa = by_cfa || rule.saved[i] != 0;
    } else if (saved.place == Place::kAtExpression) {
      rule.saved[i] = words_below_fp(saved.expression);
      by_fp = by_fp || rule.saved[i] != 0;
    }
    if (rule.saved[i] == 0 && i == 0) {
      return false;
    }
  }
  rule.flags = by_fp ? std::uint8_t{UNWIND_SAVED_BY_FP} : std::uint8_t{0};
  return !(by_fp && by_cfa);
}

// All zero: not representable.
unwind_rule rule_of(const UnwindRow& row) {
  unwind_rule rule{};
  const auto& return_address = row.registers[kReturnAddress];
  if (row.signal_frame) {
    rule.kind = UNWIND_SIGNAL;
    return rule;
  }
  if (return_address.place == Place::kLost) {
    rule.kind = UNWIND_END;
    return rule;
  }
  if (row.cfa_register) {
    if (*row.cfa_register >= kReturnAddress || !fits_32(row.cfa_offset)) {
      return {};
    }
    rule.kind = UNWIND_CFA;
    rule.base = static_cast<std::uint8_t>(*row.cfa_register);
    rule.offset = static_cast<std::int32_t>(row.cfa_offset);
  } else {
    const auto by_expression = expression_rule(row.cfa_expression);
    if (!by_expression) {
      return {};
    }
    rule = *by_expression;
  }
  const auto& sp = row.registers[kStackPointer];
  const bool plain_sp =
      sp.place == Place::kUnchanged || (sp.place == Place::kCfaValue && sp.offset == 0);
  if (return_address.place == Place::kInRegister && rule.kind == UNWIND_CFA && plain_sp &&
      static_cast<std::uint64_t>(return_address.offset) < kReturnAddress) {
    rule.kind = UNWIND_RA_IN_REG;
    rule.addend = static_cast<std::int16_t>(return_address.offset);
    return rule;
  }
  const bool plain_ra = return_address.place == Place::kAtCfa && return_address.offset == -kWord;
  return plain_ra && plain_sp && add_saved(row, rule) ? rule : unwind_rule{};
}

class Compiler {
 public:
  Compiler(const EhFrame& frame, base::ElfAddress entry, UnwindRules& rules,
           UnwindTableLimits& limits)
      : frame_{frame}, entry_{entry.value()}, rules_{rules}, limits_{limits} {}

  std::optional<UnwindTable> run() {
    const auto& functions = frame_.functions();
    const auto begin = functions.front().begin.value() & ~(kChunk - 1);
    table_.begin = base::ElfAddress{begin};
    auto covered = begin;  // end of what is compiled
    for (const auto& function : functions) {
      const auto from = function.begin.value();
      const auto to = from + function.size;
      if (from < covered || to < from || to - begin > kMostCode) {
        continue;  // overlaps, or is not credible
      }
      gap(covered, from);
      if (!add(function, to)) {
        return std::nullopt;
      }
      covered = to;
    }
    put(covered, 0);
    table_.end = base::ElfAddress{covered};
    const auto chunks = (covered - begin) / kChunk + 1;
    if (!fill_index(chunks + 1)) {
      return std::nullopt;
    }
    table_.rows.shrink_to_fit();
    return failed_ ? std::nullopt : std::optional{std::move(table_)};
  }

 private:
  static constexpr std::uint64_t kMostCode = std::uint64_t{1} << 32U;

  // Between two functions is padding, or code without a row. Short gaps keep the row before: of
  // hand-written functions, some bytes at the end may lack one.
  void gap(std::uint64_t from, std::uint64_t to) {
    constexpr std::uint64_t kPadding = 16;
    constexpr std::uint64_t kFirstFunction = 64;  // bytes of glibc's RTLD_START, which has no row
    if (to - from >= kPadding) {
      put(from, 0);
    }
    if (entry_ != 0 && from <= entry_ && entry_ < to) {
      unwind_rule end{};
      end.kind = UNWIND_END;
      put(entry_, rules_.number_of(end, limits_.new_rules));
      if (entry_ + kFirstFunction < to) {
        put(entry_ + kFirstFunction, 0);
      }
    }
  }

  bool add(const UnwoundFunction& function, std::uint64_t end) {
    const bool valid = each_row(frame_.common_of(function), function, limits_.steps,
                                [&](base::ElfAddress at, const UnwindRow& row) {
                                  if (at >= function.begin && at.value() < end) {
                                    (void)limits_.steps.take(kStepsOfRow);
                                    put(at.value(), number_of(row));
                                  }
                                });
    if (!valid) {
      put(function.begin.value() < last_ ? last_ : function.begin.value(), 0);
    }
    return !limits_.steps.exhausted() && !failed_;
  }

  std::uint16_t number_of(const UnwindRow& row) {
    const auto rule = rule_of(row);
    return rule.kind == UNWIND_NONE ? std::uint16_t{0} : rules_.number_of(rule, limits_.new_rules);
  }

  bool fill_index(std::uint64_t size) {
    if (size > table_.index.size() &&
        !limits_.bytes.take((size - table_.index.size()) * sizeof table_.index.front())) {
      failed_ = true;
      return false;
    }
    table_.index.resize(std::max<std::size_t>(table_.index.size(), size),
                        static_cast<std::uint32_t>(table_.rows.size()));
    return true;
  }

  void put(std::uint64_t address, std::uint16_t number) {
    if (failed_ || (number == number_ && !table_.rows.empty())) {
      return;
    }
    const auto place = address - table_.begin.value();
    if (!fill_index(place / kChunk + 1) || !limits_.bytes.take(sizeof table_.rows.front())) {
      failed_ = true;
      return;
    }
    number_ = number;
    last_ = address;
    table_.rows.push_back(
        static_cast<std::uint32_t>((place & (kChunk - 1)) << kOffsetShift | number));
  }

  const EhFrame& frame_;
  std::uint64_t entry_;
  UnwindRules& rules_;
  UnwindTableLimits& limits_;
  UnwindTable table_;
  std::uint16_t number_ = 0;  // of the last row
  std::uint64_t last_ = 0;    // address of the last row
  bool failed_ = false;
};

}  // namespace

std::size_t UnwindRules::Hash::operator()(const Key& key) const {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  std::uint64_t hash = 0;
  for (const auto word : key) {
    hash = (hash ^ word ^ (hash >> 32U)) * kOdd;
  }
  return hash ^ (hash >> 29U);
}

UnwindRules::UnwindRules() {
  rules_.emplace_back();
  numbers_.emplace(Key{}, std::uint16_t{0});
}

std::uint16_t UnwindRules::number_of(const unwind_rule& rule, base::Allowance& new_rules) {
  const auto key = std::bit_cast<Key>(rule);
  if (const auto known = numbers_.find(key); known != numbers_.end()) {
    return known->second;
  }
  if (rules_.size() >= UNWIND_MOST_RULES || !new_rules.take(1)) {
    return 0;
  }
  const auto number = static_cast<std::uint16_t>(rules_.size());
  rules_.push_back(rule);
  numbers_.emplace(key, number);
  return number;
}

std::uint16_t UnwindTable::rule_at(base::ElfAddress pc) const {
  if (pc < begin || pc >= end) {
    return 0;
  }
  const auto place = pc.value() - begin.value();
  const auto chunk = static_cast<std::size_t>(place / kChunk);
  const auto from = rows.begin() + index[chunk];
  const auto to = rows.begin() + index[chunk + 1];
  const auto behind = std::upper_bound(
      from, to, place & (kChunk - 1),
      [](std::uint64_t offset, std::uint32_t row) { return offset < row >> kOffsetShift; });
  return behind == rows.begin() ? std::uint16_t{0} : static_cast<std::uint16_t>(*std::prev(behind));
}

std::optional<UnwindTable> compile_unwind_table(const ElfFile& file, UnwindRules& rules,
                                                UnwindTableLimits& limits) {
  const auto frame = EhFrame::of(file, limits.bytes);
  if (!frame || frame->functions().empty()) {
    return std::nullopt;
  }
  return Compiler{*frame, file.entry(), rules, limits}.run();
}

}  // namespace pyinject::elf
