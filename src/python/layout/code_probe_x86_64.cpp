#include "python/layout/code_probe.hpp"

#include <Zydis/Zydis.h>

#include <array>
#include <cstring>
#include <set>

namespace pyinject::python {

namespace {

struct Instruction {
  ZydisDecodedInstruction decoded;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  std::uint64_t address;
};

// Calls VISIT for every instruction of CODE until it returns false or the bytes are invalid.
void disassemble(std::span<const std::byte> code, base::RemoteAddress at,
                 const std::function<bool(const Instruction&)>& visit) {
  ZydisDecoder decoder;
  if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64))) {
    return;
  }
  std::size_t offset = 0;
  Instruction instruction{};
  while (offset < code.size()) {
    if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code.data() + offset, code.size() - offset,
                                           &instruction.decoded, instruction.operands.data()))) {
      return;
    }
    instruction.address = at.value() + offset;
    if (!visit(instruction)) {
      return;
    }
    offset += instruction.decoded.length;
  }
}

std::uint64_t displacement(const ZydisDecodedOperand& operand) {
  return static_cast<std::uint64_t>(operand.mem.disp.value);
}

// The absolute address in a rip-relative or constant operand.
std::optional<std::uint64_t> absolute(const Instruction& instruction,
                                      const ZydisDecodedOperand& operand) {
  if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    return operand.imm.value.u;
  }
  std::uint64_t address = 0;
  if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base == ZYDIS_REGISTER_RIP &&
      ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&instruction.decoded, &operand, instruction.address,
                                            &address))) {
    return address;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> first_field_loaded(std::span<const std::byte> code,
                                                base::RemoteAddress at) {
  std::optional<std::uint64_t> field;
  disassemble(code, at, [&field](const Instruction& instruction) {
    for (std::size_t i = 0; i < instruction.decoded.operand_count_visible; ++i) {
      const auto& operand = instruction.operands.at(i);
      if (instruction.decoded.mnemonic == ZYDIS_MNEMONIC_MOV &&
          operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base == ZYDIS_REGISTER_RDI) {
        field = displacement(operand);
        return false;
      }
    }
    return instruction.decoded.mnemonic != ZYDIS_MNEMONIC_RET;
  });
  return field;
}

std::optional<std::uint64_t> first_element_compared(std::span<const std::byte> code,
                                                    base::RemoteAddress at) {
  std::optional<std::uint64_t> array;
  disassemble(code, at, [&array](const Instruction& instruction) {
    const auto& operand = instruction.operands[0];
    if (instruction.decoded.mnemonic == ZYDIS_MNEMONIC_CMP &&
        operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.index != ZYDIS_REGISTER_NONE &&
        operand.mem.scale == sizeof(std::uint64_t)) {
      array = displacement(operand);
    }
    return !array;
  });
  return array;
}

namespace {

using SlotReader = std::function<std::optional<std::uint64_t>(base::RemoteAddress)>;

// The registers whose values follow from the code alone: constants, addresses, words of the
// global offset table, and sums of these. Follows the code in its order, without jumps.
class KnownRegisters {
 public:
  explicit KnownRegisters(const SlotReader& slot) : slot_{slot} {}

  // The address of a memory operand.
  [[nodiscard]] std::optional<std::uint64_t> address_of(const Instruction& instruction,
                                                        const ZydisDecodedOperand& operand) const {
    if (operand.mem.index != ZYDIS_REGISTER_NONE || operand.mem.segment == ZYDIS_REGISTER_FS ||
        operand.mem.segment == ZYDIS_REGISTER_GS) {
      return std::nullopt;
    }
    if (operand.mem.base == ZYDIS_REGISTER_RIP) {
      return absolute(instruction, operand);
    }
    const auto base = values_.at(whole(operand.mem.base));
    return base ? std::optional{*base + displacement(operand)} : std::nullopt;
  }

  // The address of the array of which an operand with an index is an element.
  [[nodiscard]] std::optional<std::uint64_t> array_of(const ZydisDecodedOperand& operand) const {
    if (operand.mem.base == ZYDIS_REGISTER_NONE) {
      return displacement(operand);
    }
    const auto base = values_.at(whole(operand.mem.base));
    return base ? std::optional{*base + displacement(operand)} : std::nullopt;
  }

  // Returns the value that INSTRUCTION computes into a register; nullopt: unknown, or none.
  std::optional<std::uint64_t> execute(const Instruction& instruction) {
    const auto& target = instruction.operands[0];
    const auto value =
        instruction.decoded.operand_count_visible == 2 && target.type == ZYDIS_OPERAND_TYPE_REGISTER
            ? result_of(instruction)
            : std::nullopt;
    if (instruction.decoded.meta.category == ZYDIS_CATEGORY_CALL) {
      values_.fill(std::nullopt);
    }
    for (std::size_t i = 0; i < instruction.decoded.operand_count; ++i) {
      const auto& operand = instruction.operands.at(i);
      if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
          (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0) {
        values_.at(whole(operand.reg.value)) = std::nullopt;
      }
    }
    if (value) {
      values_.at(whole(target.reg.value)) = value;
    }
    return value;
  }

 private:
  static std::size_t whole(ZydisRegister part) {
    const auto all = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, part);
    return all == ZYDIS_REGISTER_NONE ? part : all;
  }

  [[nodiscard]] std::optional<std::uint64_t> value_of(const Instruction& instruction,
                                                      const ZydisDecodedOperand& operand) const {
    if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
      return operand.imm.value.u;
    }
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
      return values_.at(whole(operand.reg.value));
    }
    const auto address = address_of(instruction, operand);
    return address ? slot_(base::RemoteAddress{*address}) : std::nullopt;
  }

  [[nodiscard]] std::optional<std::uint64_t> result_of(const Instruction& instruction) const {
    const auto& target = instruction.operands[0];
    const auto& source = instruction.operands[1];
    if (target.size < 32) {
      return std::nullopt;  // keeps the rest of the register
    }
    std::optional<std::uint64_t> value;
    switch (instruction.decoded.mnemonic) {
      case ZYDIS_MNEMONIC_LEA:
        value = address_of(instruction, source);
        break;
      case ZYDIS_MNEMONIC_MOV:
        value = value_of(instruction, source);
        break;
      case ZYDIS_MNEMONIC_ADD: {
        const auto left = value_of(instruction, target);
        const auto right = value_of(instruction, source);
        value = left && right ? std::optional{*left + *right} : std::nullopt;
        break;
      }
      default:
        break;
    }
    constexpr std::uint64_t kLower = 0xffffffff;  // the upper half is set to 0
    return value && target.size == 32 ? std::optional{*value & kLower} : value;
  }

  const SlotReader& slot_;
  std::array<std::optional<std::uint64_t>, ZYDIS_REGISTER_MAX_VALUE + 1> values_{};
};

}  // namespace

bool takes_address(std::span<const std::byte> code, base::RemoteAddress at,
                   base::RemoteAddress base, std::uint64_t offset, const SlotReader& slot) {
  const std::uint64_t wanted = base.value() + offset;
  KnownRegisters registers{slot};
  bool found = false;
  disassemble(code, at, [&](const Instruction& instruction) {
    for (std::size_t i = 0; i < instruction.decoded.operand_count_visible && !found; ++i) {
      const auto& operand = instruction.operands.at(i);
      found = operand.type == ZYDIS_OPERAND_TYPE_MEMORY
                  ? registers.address_of(instruction, operand) == wanted
                  : absolute(instruction, operand) == wanted;
    }
    found = found || registers.execute(instruction) == wanted;
    return !found;
  });
  return found;
}

std::optional<TableCall> first_call_through_table(std::span<const std::byte> code,
                                                  base::RemoteAddress at) {
  const SlotReader no_slots = [](base::RemoteAddress) { return std::nullopt; };
  KnownRegisters registers{no_slots};
  std::optional<TableCall> found;
  disassemble(code, at, [&](const Instruction& instruction) {
    const auto& operand = instruction.operands[0];
    if (instruction.decoded.meta.category == ZYDIS_CATEGORY_CALL &&
        operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.index != ZYDIS_REGISTER_NONE &&
        operand.mem.scale == sizeof(std::uint64_t)) {
      if (const auto table = registers.array_of(operand)) {
        found = {
            .table = base::RemoteAddress{*table},
            .returns_to = base::RemoteAddress{instruction.address + instruction.decoded.length}};
      }
    }
    registers.execute(instruction);
    return !found;
  });
  return found;
}

std::vector<std::size_t> uses_of_table(std::span<const std::byte> code, base::RemoteAddress at,
                                       base::RemoteAddress table) {
  constexpr std::size_t kDisplacement = sizeof(std::int32_t);
  std::vector<std::size_t> uses;
  for (std::size_t i = 2; i + kDisplacement <= code.size(); ++i) {
    std::int32_t displacement = 0;
    std::memcpy(&displacement, code.data() + i, sizeof displacement);
    const auto value = static_cast<std::uint64_t>(std::int64_t{displacement});
    const auto before = [&code, i](std::size_t bytes) {
      return std::to_integer<unsigned>(code[i - bytes]);
    };
    // Intel's manual, volume 2, 2.1.5: CALL is FF /2; without a base, the scale of 8 in the upper
    // bits of the SIB byte. A prefix REX.X precedes it for r8 to r15: not needed to decode a call.
    const bool calls = i >= 3 && value == table.value() && before(3) == 0xff && before(2) == 0x14 &&
                       (before(1) & 0xc7U) == 0xc5;
    // LEA is 8D, relative to the instruction pointer: after the displacement.
    const bool loads = i >= 3 && before(2) == 0x8d && (before(1) & 0xc7U) == 0x05 &&
                       at.value() + i + kDisplacement + value == table.value();
    if (calls || loads) {
      uses.push_back(i - 3);  // LEA has a prefix
    }
  }
  return uses;
}

std::vector<base::RemoteAddress> jumps_out_of(std::span<const std::byte> code,
                                              base::RemoteAddress at) {
  std::set<base::RemoteAddress> targets;
  disassemble(code, at, [&](const Instruction& instruction) {
    const auto category = instruction.decoded.meta.category;
    const auto& operand = instruction.operands[0];
    std::uint64_t target = 0;
    if ((category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_UNCOND_BR) &&
        operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.is_relative != ZYAN_FALSE &&
        ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&instruction.decoded, &operand, instruction.address,
                                              &target)) &&
        target - at.value() >= code.size()) {
      targets.insert(base::RemoteAddress{target});
    }
    return true;
  });
  return {targets.begin(), targets.end()};
}

}  // namespace pyinject::python
