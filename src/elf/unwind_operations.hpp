// DW_OP_*: the operations of DWARF expressions: DWARF 4 section 7.7.1.
#pragma once

#include <cstdint>

namespace pyinject::elf {

enum Operation : std::uint8_t {
  kAddress = 0x03,
  kDereference = 0x06,
  kUnsigned1 = 0x08,
  kSigned1 = 0x09,
  kUnsigned2 = 0x0a,
  kSigned2 = 0x0b,
  kUnsigned4 = 0x0c,
  kSigned4 = 0x0d,
  kUnsigned8 = 0x0e,
  kSigned8 = 0x0f,
  kUnsignedLeb = 0x10,
  kSignedLeb = 0x11,
  kDuplicate = 0x12,
  kDrop = 0x13,
  kOver = 0x14,
  kSwap = 0x16,
  kAnd = 0x1a,
  kMinus = 0x1c,
  kMultiply = 0x1e,
  kNegate = 0x1f,
  kNot = 0x20,
  kOr = 0x21,
  kPlus = 0x22,
  kPlusConstant = 0x23,
  kShiftLeft = 0x24,
  kShiftRight = 0x25,
  kExclusiveOr = 0x27,
  kEqual = 0x29,
  kGreaterOrEqual = 0x2a,
  kGreater = 0x2b,
  kLessOrEqual = 0x2c,
  kLess = 0x2d,
  kNotEqual = 0x2e,
  kLiteral0 = 0x30,
  kLiteral31 = 0x4f,
  kRegister0 = 0x70,
  kRegister31 = 0x8f,
  kRegisterLeb = 0x92,
  kNoOperation = 0x96,
};

}  // namespace pyinject::elf
