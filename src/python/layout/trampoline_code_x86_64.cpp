#include "python/layout/trampoline_code.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace pyinject::python {

namespace {

bool equals(std::span<const std::byte> code, std::initializer_list<std::uint8_t> bytes) {
  return std::ranges::equal(code, bytes, {}, [](std::byte b) { return std::to_integer<int>(b); });
}

}  // namespace

bool is_trampoline_code(std::span<const std::byte> code) {
  constexpr std::size_t kEndbr = 4;
  if (code.size() > kEndbr && equals(code.first(kEndbr), {0xf3, 0x0f, 0x1e, 0xfa})) {
    code = code.subspan(kEndbr);
  }
  // sub $8,%rsp; call *%rcx; add $8,%rsp; ret
  return equals(code, {0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3}) ||
         // push %rbp; mov %rsp,%rbp; call *%rcx; pop %rbp; ret
         equals(code, {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3});
}

}  // namespace pyinject::python
