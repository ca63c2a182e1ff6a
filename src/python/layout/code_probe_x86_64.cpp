#include "python/layout/code_probe.hpp"

#include <Zydis/Zydis.h>

#include <array>
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

bool takes_address(std::span<const std::byte> code, base::RemoteAddress at,
                   base::RemoteAddress base, std::uint64_t offset,
                   const std::function<std::optional<std::uint64_t>(base::RemoteAddress)>& slot) {
  const std::uint64_t wanted = base.value() + offset;
  // Registers that hold BASE: loaded from a slot, or computed, if the linker knew the address and
  // replaced the load.
  std::array<bool, ZYDIS_REGISTER_MAX_VALUE + 1> holds_base{};
  bool found = false;
  disassemble(code, at, [&](const Instruction& instruction) {
    for (std::size_t i = 0; i < instruction.decoded.operand_count_visible && !found; ++i) {
      const auto& operand = instruction.operands.at(i);
      const auto address = absolute(instruction, operand);
      found =
          address == wanted || (operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
                                holds_base.at(operand.mem.base) && displacement(operand) == offset);
    }
    if (found) {
      return false;
    }
    const auto& target = instruction.operands[0];
    const bool moves = instruction.decoded.mnemonic == ZYDIS_MNEMONIC_MOV;
    if (instruction.decoded.operand_count_visible == 2 &&
        target.type == ZYDIS_OPERAND_TYPE_REGISTER &&
        (moves || instruction.decoded.mnemonic == ZYDIS_MNEMONIC_LEA)) {
      const auto& source = instruction.operands[1];
      auto value = absolute(instruction, source);
      if (value && moves && source.type == ZYDIS_OPERAND_TYPE_MEMORY) {
        value = slot(base::RemoteAddress{*value});
      }
      holds_base.at(target.reg.value) = value == base.value();
    }
    return true;
  });
  return found;
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
