// The machine code of trampolines that has no unwind tables.
#include "bpf/native_tables.hpp"

#include <array>
#include <string_view>

namespace pyinject::bpf {

std::optional<native_mapping> recognise_trampolines(std::span<const std::byte> bytes) {
  struct Known {
    std::string_view code;
    std::uint32_t enters;  // offset from which on the stack pointer is moved
    bool keeps_fp;
    native_mapping_kind kind;
  };
  using std::string_view_literals::operator""sv;
  // sub $8,%rsp; call *%rcx; add $8,%rsp; ret. push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret.
  // sub $16,%rsp; mov %r10,(%rsp).
  static constexpr std::array kKnown{
      Known{"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3"sv, 4, false, NATIVE_TRAMPOLINE},
      Known{"\x55\x48\x89\xe5\xff\xd1\x5d\xc3"sv, 1, true, NATIVE_TRAMPOLINE},
      Known{"\x48\x83\xec\x10\x4c\x89\x14\x24"sv, 4, false, NATIVE_CLOSURE}};
  static constexpr auto kEndbr = "\xf3\x0f\x1e\xfa"sv;
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const std::uint32_t prefix = text.starts_with(kEndbr) ? kEndbr.size() : 0;
  for (const auto& known : kKnown) {
    if (!text.substr(prefix).starts_with(known.code)) {
      continue;
    }
    // CPython 3.12 does not align them.
    const auto size = prefix + static_cast<std::uint32_t>(known.code.size());
    for (auto next = size; next + size <= text.size(); ++next) {
      if (text.substr(next, size) == text.substr(0, size)) {
        native_mapping mapping{};
        mapping.kind = static_cast<__u8>(known.kind);
        mapping.place = next;
        mapping.chunks = known.kind == NATIVE_CLOSURE ? next : size;
        mapping.word = prefix + known.enters;
        mapping.keeps_fp = known.keeps_fp ? 1 : 0;
        return mapping;
      }
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::bpf
