#include "elf/call_frame_info.hpp"
#include "elf/eh_frame.hpp"

namespace pyinject::elf {

namespace {

// Limits for a single file and a single row outside of a recording.
constexpr std::uint64_t kMostMemoryOfFile = std::uint64_t{128} << 20U;
constexpr std::uint64_t kMostStepsOfRow = 100'000;

}  // namespace

class CallFrameInfo::Impl {
 public:
  explicit Impl(EhFrame table) : table_{std::move(table)} {}
  [[nodiscard]] const EhFrame& table() const { return table_; }

 private:
  EhFrame table_;
};

CallFrameInfo::CallFrameInfo(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
CallFrameInfo::CallFrameInfo(CallFrameInfo&& other) noexcept = default;
CallFrameInfo& CallFrameInfo::operator=(CallFrameInfo&& other) noexcept = default;
CallFrameInfo::~CallFrameInfo() = default;

std::optional<CallFrameInfo> CallFrameInfo::of(const ElfFile& file) {
  base::Allowance memory{kMostMemoryOfFile};
  return of(file, memory);
}

std::optional<CallFrameInfo> CallFrameInfo::of(const ElfFile& file, base::Allowance& memory) {
  auto table = EhFrame::of(file, memory);
  if (!table) {
    return std::nullopt;
  }
  return CallFrameInfo{std::make_unique<Impl>(std::move(*table))};
}

std::optional<UnwindRow> CallFrameInfo::row_at(base::ElfAddress pc, base::Allowance& steps) const {
  return impl_->table().row_at(pc, steps);
}

std::optional<CallerRule> CallFrameInfo::rule_at(base::ElfAddress pc) const {
  using Place = SavedRegister::Place;
  base::Allowance steps{kMostStepsOfRow};
  const auto row = row_at(pc, steps);
  const auto base = row ? row->cfa_register.value_or(kUnwoundRegisters) : kUnwoundRegisters;
  if (base != kFramePointer && base != kStackPointer) {
    return std::nullopt;
  }
  const auto& return_address = row->registers[kReturnAddress];
  const auto& frame_pointer = row->registers[kFramePointer];
  if (return_address.place != Place::kAtCfa ||
      (frame_pointer.place != Place::kAtCfa && frame_pointer.place != Place::kUnchanged)) {
    return std::nullopt;
  }
  CallerRule rule{.from_frame_pointer = base == kFramePointer,
                  .frame_offset = row->cfa_offset,
                  .return_address = return_address.offset,
                  .saved_frame_pointer = std::nullopt};
  if (frame_pointer.place == Place::kAtCfa) {
    rule.saved_frame_pointer = frame_pointer.offset;
  }
  return rule;
}

std::optional<CodeExtent> CallFrameInfo::extent_at(base::ElfAddress pc) const {
  const auto* const function = impl_->table().function_at(pc);
  return function == nullptr
             ? std::nullopt
             : std::optional{CodeExtent{.begin = function->begin, .size = function->size}};
}

}  // namespace pyinject::elf
