#include "unwind/unwinder.hpp"

#include "unwind/step.hpp"

#include <algorithm>
#include <cstring>

namespace pyinject::unwind {

namespace {

// Limit on steps per sample; the number that is free; the number that remains free once the process
// has used up its share. Real stacks take some hundred steps, and the first ones, with cold caches,
// some ten thousand.
constexpr std::uint64_t kMostStepsOfSample = 1'000'000;
constexpr std::uint64_t kFreeSteps = 40'000;
constexpr std::uint64_t kFreeStepsOfSpender = 4'000;
constexpr std::uint64_t kStepsToLookUp = 50;
constexpr std::size_t kOfHashing = 4 * sizeof(void*);  // overhead of an unordered_map entry

bool is_frame(const Rule& rule) {
  return rule.cfa_register == elf::kFramePointer && rule.cfa_offset == 16 &&
         rule.return_address == -8 && rule.frame_pointer == -16;
}

// The frame of a function that has aligned its stack is below the canonical one.
bool is_frame(const elf::UnwindRow& row) {
  constexpr std::byte kAtFramePointer{0x76};  // DW_OP_breg6
  const auto& saved = row.registers[elf::kFramePointer];
  return !row.signal_frame && saved.place == elf::SavedRegister::Place::kAtExpression &&
         saved.expression.size() == 2 && saved.expression[0] == kAtFramePointer &&
         saved.expression[1] == std::byte{0};
}

}  // namespace

std::optional<std::uint64_t> StackDump::word_at(std::uint64_t address) const {
  std::uint64_t word = 0;
  const auto offset = address - begin;
  if (address < begin || offset > bytes.size() || bytes.size() - offset < sizeof word) {
    return std::nullopt;
  }
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

Unwinder::Payer Unwinder::payer_of(ProcessNumber pid) const {
  const auto family = spaces_.family(pid);
  const auto left = budget_->steps.left(family);
  return {.family = family,
          .steps =
              base::Allowance{left < kFreeSteps ? kFreeStepsOfSpender
                                                : std::min(kMostStepsOfSample, kFreeSteps + left)}};
}

void Unwinder::settle(const Payer& payer) {
  const auto taken = payer.steps.taken();
  if (taken > kFreeSteps) {
    budget_->steps.charge(payer.family, taken - kFreeSteps);
  }
}

Unwinder::Known Unwinder::look_up(ProcessNumber pid, Time time, std::uint64_t address,
                                  Payer& payer) {
  auto& known = known_[pid];
  const auto found = known.find(address);
  if (found != known.end() && found->second.from <= time && time < found->second.until) {
    return found->second;
  }
  Known result;
  if (!payer.steps.take(kStepsToLookUp)) {
    return result;
  }
  const auto keep = [&](std::size_t bytes) {
    return budget_->bytes.take(payer.family, bytes + kOfHashing);
  };
  bool kept = true;
  result.trampoline = trampolines_.find(pid, address);
  if (result.trampoline) {
    result.until = ~Time{0};
  } else {
    const auto mapped = spaces_.look_up(pid, time, address);
    result.file = mapped.file;
    result.from = mapped.from;
    result.until = mapped.until;
    if (!payer.steps.take(mapped.steps)) {
      return result;
    }
    const auto object = mapped.file != nullptr
                            ? objects_.of(*mapped.file, payer.family, payer.steps)
                            : MappedObject{};
    result.refused = object.refused;
    if (object.object != nullptr) {
      const auto rule = object.object->rule_at(object.bias.remove(base::RemoteAddress{address}),
                                               payer.steps, keep);
      result.rule = rule.rule;
      result.kind = rule.rule->kind;
      kept = rule.kept;
    }
  }
  if (!kept || result.refused || payer.steps.exhausted()) {
    return result;
  }
  if (found != known.end()) {
    found->second = result;
  } else if (result.from < result.until && keep(sizeof result)) {
    known.emplace(address, result);
  }
  return result;
}

std::optional<bool> Unwinder::keeps_frame(ProcessNumber pid, Time time, std::uint64_t address) {
  auto payer = payer_of(pid);
  const auto known = look_up(pid, time, address, payer);
  settle(payer);
  switch (known.kind) {
    case Rule::Kind::kNone:
      return std::nullopt;
    case Rule::Kind::kEnd:
      return true;  // it has no caller to skip
    case Rule::Kind::kFast:
      return is_frame(*known.rule);
    case Rule::Kind::kSlow:
      return is_frame(*known.rule->row);
  }
  return std::nullopt;
}

Unwound Unwinder::unwind(ProcessNumber pid, Time time, Registers registers, const StackDump& stack,
                         std::vector<std::uint64_t>& chain, std::vector<Registers>* registers_of) {
  auto payer = payer_of(pid);
  auto unwound = walk(pid, time, registers, stack, chain, registers_of, payer);
  settle(payer);
  if (payer.steps.exhausted()) {
    unwound.end = EndOfStack::kBroken;
    unwound.too_slow = true;
  }
  return unwound;
}

Unwound Unwinder::walk(ProcessNumber pid, Time time, Registers registers, const StackDump& stack,
                       std::vector<std::uint64_t>& chain, std::vector<Registers>* registers_of,
                       Payer& payer) {
  Unwound result;
  bool interrupted = true;  // true for the innermost function and for one interrupted by a signal
  for (std::size_t depth = 0; depth < kMostFrames; ++depth) {
    const auto pc = registers.pc();
    if (pc == 0) {
      result.end = depth == 0 ? EndOfStack::kBroken : EndOfStack::kWhole;
      return result;
    }
    const auto address = interrupted ? pc : pc - 1;
    const auto known = look_up(pid, time, address, payer);
    chain.push_back(address);
    if (registers_of != nullptr) {
      registers_of->push_back(registers);
    }
    interrupted = false;
    Step step = Step::kNotThere;
    if (payer.steps.exhausted()) {
      result.file = known.file;
      return result;
    }
    result.too_large = result.too_large || known.refused;
    if (known.trampoline) {
      step = by_trampoline(*known.trampoline, stack, registers);
    } else if (known.kind == Rule::Kind::kEnd) {
      return result;
    } else if (known.kind == Rule::Kind::kFast) {
      step = by_rule(*known.rule, stack, registers);
    } else if (known.kind == Rule::Kind::kSlow) {
      step = by_row(*known.rule->row, stack, payer.steps, registers);
      interrupted = known.rule->row->signal_frame;
    } else {
      step = by_frame_pointer(stack, registers);
      const auto* const caller =
          step == Step::kDone ? spaces_.find(pid, time, registers.pc() - 1) : nullptr;
      if (step == Step::kDone && (caller == nullptr || !caller->executable)) {
        step = Step::kNotThere;  // the supposed return address does not point to code
      }
      result.by_frame_pointer += step == Step::kDone ? 1 : 0;
    }
    if (step != Step::kDone) {
      result.end = step == Step::kNotThere               ? EndOfStack::kNoInformation
                   : step == Step::kOutside && stack.cut ? EndOfStack::kCut
                                                         : EndOfStack::kBroken;
      result.file = known.file;
      return result;
    }
  }
  result.end = EndOfStack::kLimit;
  return result;
}

}  // namespace pyinject::unwind
