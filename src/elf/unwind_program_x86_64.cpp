// Call frame instructions: DWARF 4 sections 6.4.2 and 7.23.
#include "base/byte_cursor.hpp"
#include "elf/eh_frame.hpp"

#include <algorithm>
#include <vector>

namespace pyinject::elf {
using base::ByteCursor;

namespace {

constexpr std::size_t kMostRemembered = 64;
constexpr std::uint64_t kStepsToCopyRow = 16;

enum Instruction : std::uint8_t {
  kNop = 0x00,
  kSetLocation = 0x01,
  kAdvance1 = 0x02,
  kAdvance2 = 0x03,
  kAdvance4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefineCfa = 0x0c,
  kDefineCfaRegister = 0x0d,
  kDefineCfaOffset = 0x0e,
  kDefineCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSigned = 0x11,
  kDefineCfaSigned = 0x12,
  kDefineCfaOffsetSigned = 0x13,
  kValueOffset = 0x14,
  kValueOffsetSigned = 0x15,
  kValueExpression = 0x16,
  kGnuArgumentsSize = 0x2e,
  // With an operand in the lower six bits.
  kAdvance = 0x40,
  kOffset = 0x80,
  kRestore = 0xc0,
};

std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

class Machine {
 public:
  Machine(const CommonInformation& common, base::ElfAddress begin, base::Allowance& steps)
      : common_{common}, at_{begin.value()}, steps_{steps} {
    row_.signal_frame = common.signal_frame;
    row_.registers[kReturnAddress].place = SavedRegister::Place::kLost;
  }

  // Runs PROGRAM up to the row for PC. False: invalid.
  bool run(std::span<const std::byte> program, std::uint64_t pc) {
    ByteCursor cursor{program};
    while (!cursor.at_end() && !passed_) {
      if (!steps_.take(1)) {
        return false;
      }
      const auto instruction = cursor.number<std::uint8_t>();
      const std::uint8_t high = instruction & 0xc0U;
      const std::uint64_t operand = instruction & 0x3fU;
      bool known = true;
      if (high == kAdvance) {
        known = advance(operand, pc);
      } else if (high == kOffset) {
        save(operand, cursor.unsigned_leb() * common_.data_alignment);
      } else if (high == kRestore) {
        restore(operand);
      } else {
        known = move(instruction, cursor, pc) || define_cfa(instruction, cursor) ||
                define_register(instruction, cursor);
      }
      if (!known || cursor.failed()) {
        return false;
      }
    }
    return true;
  }

  // Registers are restored to the state at this point.
  void end_of_common_program() { initial_ = row_; }
  // From now on, EACH gets each row as soon as it is complete.
  void pass_rows_to(const EachRow& each) { each_ = &each; }
  [[nodiscard]] base::ElfAddress at() const { return base::ElfAddress{at_}; }
  [[nodiscard]] const UnwindRow& row() const { return row_; }

 private:
  bool advance(std::uint64_t count, std::uint64_t pc) {
    std::uint64_t distance = 0;
    std::uint64_t next = 0;
    if (__builtin_mul_overflow(count, common_.code_alignment, &distance) ||
        __builtin_add_overflow(at_, distance, &next)) {
      return false;
    }
    if (each_ != nullptr && next > at_) {
      (*each_)(at(), row_);
    }
    passed_ = next > pc;
    at_ = next;
    return true;
  }

  bool move(std::uint8_t instruction, ByteCursor& cursor, std::uint64_t pc) {
    switch (instruction) {
      case kNop:
        return true;
      case kAdvance1:
        return advance(cursor.number<std::uint8_t>(), pc);
      case kAdvance2:
        return advance(cursor.number<std::uint16_t>(), pc);
      case kAdvance4:
        return advance(cursor.number<std::uint32_t>(), pc);
      case kRememberState:
        remembered_.push_back(row_);
        return remembered_.size() <= kMostRemembered && steps_.take(kStepsToCopyRow);
      case kRestoreState:
        if (remembered_.empty()) {
          return false;
        }
        row_ = remembered_.back();
        remembered_.pop_back();
        return steps_.take(kStepsToCopyRow);
      case kGnuArgumentsSize:
        (void)cursor.unsigned_leb();
        return true;
      default:
        return false;  // includes kSetLocation, which x86-64 compilers do not use
    }
  }

  bool define_cfa(std::uint8_t instruction, ByteCursor& cursor) {
    switch (instruction) {
      case kDefineCfa:
        set_cfa_base(cursor.unsigned_leb());
        row_.cfa_offset = as_signed(cursor.unsigned_leb());
        return true;
      case kDefineCfaSigned:
        set_cfa_base(cursor.unsigned_leb());
        row_.cfa_offset = as_signed(cursor.signed_leb() * common_.data_alignment);
        return true;
      case kDefineCfaRegister:
        set_cfa_base(cursor.unsigned_leb());
        return true;
      case kDefineCfaOffset:
        row_.cfa_offset = as_signed(cursor.unsigned_leb());
        return true;
      case kDefineCfaOffsetSigned:
        row_.cfa_offset = as_signed(cursor.signed_leb() * common_.data_alignment);
        return true;
      case kDefineCfaExpression:
        row_.cfa_register.reset();
        row_.cfa_expression = cursor.take(cursor.unsigned_leb());
        return true;
      default:
        return false;
    }
  }

  bool define_register(std::uint8_t instruction, ByteCursor& cursor) {
    const auto number = cursor.unsigned_leb();
    switch (instruction) {
      case kOffsetExtended:
        save(number, cursor.unsigned_leb() * common_.data_alignment);
        return true;
      case kOffsetExtendedSigned:
        save(number, cursor.signed_leb() * common_.data_alignment);
        return true;
      case kRestoreExtended:
        restore(number);
        return true;
      case kSameValue:
        set(number, {.place = SavedRegister::Place::kUnchanged});
        return true;
      case kUndefined:
        set(number, {.place = SavedRegister::Place::kLost});
        return true;
      case kRegister:
        set(number, {.place = SavedRegister::Place::kInRegister,
                     .offset = as_signed(cursor.unsigned_leb())});
        return true;
      case kValueOffset:
        set(number, {.place = SavedRegister::Place::kCfaValue,
                     .offset = as_signed(cursor.unsigned_leb() * common_.data_alignment)});
        return true;
      case kValueOffsetSigned:
        set(number, {.place = SavedRegister::Place::kCfaValue,
                     .offset = as_signed(cursor.signed_leb() * common_.data_alignment)});
        return true;
      case kExpression:
        set(number, {.place = SavedRegister::Place::kAtExpression,
                     .expression = cursor.take(cursor.unsigned_leb())});
        return true;
      case kValueExpression:
        set(number, {.place = SavedRegister::Place::kExpression,
                     .expression = cursor.take(cursor.unsigned_leb())});
        return true;
      default:
        return false;
    }
  }

  // All untracked registers, such as vector registers, share one number: their values are not
  // needed.
  void set_cfa_base(std::uint64_t number) {
    row_.cfa_register =
        static_cast<std::size_t>(std::min<std::uint64_t>(number, kUnwoundRegisters));
  }
  void set(std::uint64_t number, const SavedRegister& saved) {
    if (number < kUnwoundRegisters) {
      row_.registers[number] = saved;
    }
  }
  void save(std::uint64_t number, std::uint64_t offset) {
    set(number, {.place = SavedRegister::Place::kAtCfa, .offset = as_signed(offset)});
  }
  void restore(std::uint64_t number) {
    if (number < kUnwoundRegisters) {
      row_.registers[number] = initial_.registers[number];
    }
  }

  const CommonInformation& common_;
  std::uint64_t at_;
  base::Allowance& steps_;
  bool passed_ = false;
  const EachRow* each_ = nullptr;
  UnwindRow row_;
  UnwindRow initial_;
  std::vector<UnwindRow> remembered_;
};

}  // namespace

std::optional<UnwindRow> run_unwind_programs(const CommonInformation& common,
                                             const UnwoundFunction& function, base::ElfAddress pc,
                                             base::Allowance& steps) {
  Machine machine{common, function.begin, steps};
  if (!machine.run(common.program, ~std::uint64_t{0})) {
    return std::nullopt;
  }
  machine.end_of_common_program();
  if (!machine.run(function.program, pc.value())) {
    return std::nullopt;
  }
  return machine.row();
}

bool each_row(const CommonInformation& common, const UnwoundFunction& function,
              base::Allowance& steps, const EachRow& each) {
  constexpr auto kAll = ~std::uint64_t{0};
  Machine machine{common, function.begin, steps};
  if (!machine.run(common.program, kAll)) {
    return false;
  }
  machine.end_of_common_program();
  machine.pass_rows_to(each);
  const bool valid = machine.run(function.program, kAll);
  if (valid) {
    each(machine.at(), machine.row());
  }
  return valid;
}

}  // namespace pyinject::elf
