#include "unwind/objects.hpp"

#include "elf/elf_file.hpp"
#include "elf/load_bias.hpp"
#include "elf/vdso.hpp"

#include <fmt/format.h>

#include <limits>
#include <variant>

namespace pyinject::unwind {

namespace {

using Place = elf::SavedRegister::Place;

constexpr std::size_t kOfHashedRow = 4 * sizeof(void*);  // overhead of an unordered_map entry
constexpr std::size_t kMostTries = 1000;                 // attempts to find a file
constexpr std::uint64_t kStepsToOpen = 20'000;
constexpr std::uint64_t kBytesPerStep = 4;  // bytes of a table read and sorted in one step

bool is_small(std::int64_t offset) {
  return offset > std::numeric_limits<std::int32_t>::min() &&
         offset <= std::numeric_limits<std::int32_t>::max();
}

// Place of a register in a Rule; nullopt: not representable.
std::optional<std::int32_t> small_place(const elf::SavedRegister& saved) {
  if (saved.place == Place::kUnchanged) {
    return Rule::kUnchanged;
  }
  if (saved.place == Place::kAtCfa && is_small(saved.offset)) {
    return static_cast<std::int32_t>(saved.offset);
  }
  return std::nullopt;
}

std::optional<Rule> fast_rule(const elf::UnwindRow& row) {
  const auto& return_address = row.registers[elf::kReturnAddress];
  const auto frame_pointer = small_place(row.registers[elf::kFramePointer]);
  if (row.signal_frame || !row.cfa_register || *row.cfa_register >= kOtherRegisters.back() + 1U ||
      !is_small(row.cfa_offset) || return_address.place != Place::kAtCfa ||
      !is_small(return_address.offset) || !frame_pointer ||
      row.registers[elf::kStackPointer].place != Place::kUnchanged) {
    return std::nullopt;
  }
  Rule rule{.kind = Rule::Kind::kFast,
            .cfa_register = static_cast<std::uint8_t>(*row.cfa_register),
            .cfa_offset = static_cast<std::int32_t>(row.cfa_offset),
            .return_address = static_cast<std::int32_t>(return_address.offset),
            .frame_pointer = *frame_pointer};
  for (std::size_t i = 0; i < kOtherRegisters.size(); ++i) {
    const auto place = small_place(row.registers[kOtherRegisters[i]]);
    if (!place) {
      return std::nullopt;
    }
    rule.others[i] = *place;
  }
  return rule;
}

std::string key_of(const MappedFile& file) {
  if (file.path == "[vdso]") {
    return file.path;
  }
  return file.inode != 0 ? fmt::format("{}:{}:{}", file.device_major, file.device_minor, file.inode)
         : !file.build_id.empty() ? file.build_id
                                  : fmt::format("{} {}", file.mapped_by, file.path);
}

bool can_have_file(const MappedFile& file) {
  return file.path.starts_with('/') && !file.path.starts_with("//");
}

}  // namespace

bool Object::is_first_function(base::ElfAddress pc) const {
  constexpr std::uint64_t kMostBytes = 64;  // of glibc's RTLD_START
  return entry_.value() != 0 && pc.value() - entry_.value() < kMostBytes;
}

Object::Found Object::rule_at(base::ElfAddress pc, base::Allowance& steps,
                              const std::function<bool(std::size_t)>& keep) {
  if (const auto found = rules_.find(pc.value()); found != rules_.end()) {
    return {.rule = &found->second, .kept = true};
  }
  last_ = {};
  if (auto row = information_.row_at(pc, steps)) {
    if (row->registers[elf::kReturnAddress].place == Place::kLost) {
      last_.kind = Rule::Kind::kEnd;
    } else if (const auto fast = fast_rule(*row)) {
      last_ = *fast;
    } else {
      last_row_ = *row;
      last_.kind = Rule::Kind::kSlow;
      last_.row = &last_row_;
    }
  } else if (is_first_function(pc)) {
    last_.kind = Rule::Kind::kEnd;
  }
  const std::size_t of_row = last_.row == nullptr ? 0 : sizeof *last_.row;
  if (steps.exhausted() || !keep(sizeof last_ + kOfHashedRow + of_row)) {
    return {.rule = &last_, .kept = false};
  }
  if (last_.row != nullptr) {
    rows_.push_back(last_row_);
    last_.row = &rows_.back();
  }
  return {.rule = &rules_.emplace(pc.value(), last_).first->second, .kept = true};
}

MappedObject Objects::of(const MappedFile& file, base::Budget::Spender spender,
                         base::Allowance& steps) {
  if (const auto found = mapped_.find(&file); found != mapped_.end()) {
    return found->second;
  }
  MappedObject result;
  if (can_have_file(file) || file.path == "[vdso]") {
    const auto key = key_of(file);
    auto known = known_.find(key);
    // Retry: another process may have the file, or may be below its limit, if the previous one has
    // exited or has reached it.
    const bool again =
        known != known_.end() &&
        (known->second.refused ? budget_->bytes.left(spender) > known->second.too_little
                               : !known->second.found && known->second.tries < kMostTries);
    if ((known == known_.end() || again) && !steps.take(kStepsToOpen)) {
      return result;
    }
    if (known == known_.end()) {
      known = known_.emplace(key, load(file, spender)).first;
    } else if (again) {
      const auto tries = known->second.tries + 1;
      known->second = load(file, spender);
      known->second.tries = tries;
    }
    if (known->second.refused) {
      result.refused = true;
      return result;
    }
    const auto bias = elf::load_bias(known->second.segments, base::RemoteAddress{file.begin},
                                     file.offset, file.executable);
    if (known->second.object && bias) {
      result = {.object = known->second.object.get(), .bias = *bias};
    }
  }
  mapped_.emplace(&file, result);
  return result;
}

Objects::Known Objects::load(const MappedFile& file, base::Budget::Spender spender) {
  Known known;
  std::vector<base::UniqueFd> candidates;
  if (file.path == "[vdso]") {
    candidates.push_back(elf::copy_of_vdso());
  } else {
    candidates = finder_.candidates(file);
  }
  for (auto& candidate : candidates) {
    if (!candidate.valid()) {
      continue;
    }
    auto opened = elf::ElfFile::open(std::move(candidate));
    const auto* const elf = std::get_if<elf::ElfFile>(&opened);
    if (elf == nullptr || (!file.build_id.empty() && elf->build_id() != file.build_id)) {
      continue;
    }
    known.found = true;
    const auto most = budget_->bytes.left(spender);
    base::Allowance memory{most};
    auto information = elf::CallFrameInfo::of(*elf, memory);
    known.refused = memory.exhausted();
    known.too_little = known.refused ? most : 0;
    budget_->bytes.charge(spender, memory.taken());
    // If the tables are refused, the number of bytes read is unknown, but at most MOST.
    budget_->steps.charge(spender, (known.refused ? most : memory.taken()) / kBytesPerStep);
    if (information) {
      known.object = std::make_unique<Object>(std::move(*information), elf->entry());
      known.segments = elf->segments();
      return known;
    }
  }
  return known;
}

}  // namespace pyinject::unwind
