#include "elf/elf_impl.hpp"
#include "pyinject/elf/call_frame_info.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <array>
#include <cstdlib>

namespace pyinject::elf {

namespace {

// DWARF numbers, System V ABI x86-64 figure 3.36.
constexpr int kRbp = 6;
constexpr int kRsp = 7;
constexpr int kReturnAddress = 16;

struct Free {
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): libdw allocates a Dwarf_Frame so
  void operator()(void* memory) const { std::free(memory); }
};

std::int64_t as_signed(Dwarf_Word value) { return static_cast<std::int64_t>(value); }

// Where a register is saved, from the CFA: "CFA + constant" is how libdw writes the rule
// DW_CFA_offset (dwarf_frame_register()).
std::optional<std::int64_t> saved_at(Dwarf_Frame* frame, int number, bool& unchanged) {
  std::array<Dwarf_Op, 3> memory{};
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  unchanged = false;
  if (dwarf_frame_register(frame, number, memory.data(), &operations, &count) != 0) {
    return std::nullopt;
  }
  unchanged = count == 0 && operations == nullptr;
  if (count == 0 || operations[0].atom != DW_OP_call_frame_cfa || count > 2) {
    return std::nullopt;
  }
  if (count == 1) {
    return 0;
  }
  return operations[1].atom == DW_OP_plus_uconst ? std::optional{as_signed(operations[1].number)}
                                                 : std::nullopt;
}

}  // namespace

class CallFrameInfo::Impl {
 public:
  explicit Impl(Dwarf_CFI* cfi) : cfi_{cfi} {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { dwarf_cfi_end(cfi_); }
  [[nodiscard]] Dwarf_CFI* get() const { return cfi_; }

 private:
  Dwarf_CFI* cfi_;
};

CallFrameInfo::CallFrameInfo(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
CallFrameInfo::CallFrameInfo(CallFrameInfo&& other) noexcept = default;
CallFrameInfo& CallFrameInfo::operator=(CallFrameInfo&& other) noexcept = default;
CallFrameInfo::~CallFrameInfo() = default;

std::optional<CallFrameInfo> CallFrameInfo::of(const ElfFile& file) {
  Dwarf_CFI* const cfi = dwarf_getcfi_elf(file.impl().elf());
  if (cfi == nullptr) {
    return std::nullopt;
  }
  return CallFrameInfo{std::make_unique<Impl>(cfi)};
}

std::optional<CallerRule> CallFrameInfo::rule_at(base::ElfAddress pc) const {
  Dwarf_Frame* raw = nullptr;
  if (dwarf_cfi_addrframe(impl_->get(), pc.value(), &raw) != 0) {
    return std::nullopt;
  }
  const std::unique_ptr<Dwarf_Frame, Free> frame{raw};
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_cfa(frame.get(), &operations, &count) != 0 || count != 1) {
    return std::nullopt;
  }
  CallerRule rule;
  const auto& cfa = operations[0];
  if (cfa.atom == DW_OP_breg0 + kRsp || cfa.atom == DW_OP_breg0 + kRbp) {
    rule.frame_from_rbp = cfa.atom == DW_OP_breg0 + kRbp;
    rule.frame_offset = as_signed(cfa.number);
  } else if (cfa.atom == DW_OP_bregx && (cfa.number == kRsp || cfa.number == kRbp)) {
    rule.frame_from_rbp = cfa.number == kRbp;
    rule.frame_offset = as_signed(cfa.number2);
  } else {
    return std::nullopt;
  }
  bool unchanged = false;
  const auto return_address = saved_at(frame.get(), kReturnAddress, unchanged);
  if (!return_address) {
    return std::nullopt;
  }
  rule.return_address = *return_address;
  rule.saved_rbp = saved_at(frame.get(), kRbp, unchanged);
  if (!rule.saved_rbp && !unchanged) {
    return std::nullopt;
  }
  return rule;
}

}  // namespace pyinject::elf
