#include "python/layout/trampoline_code.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace pyinject::python {
namespace {

const std::vector<std::uint8_t> kEarly{0x48, 0x83, 0xec, 0x08, 0xff, 0xd1,
                                       0x48, 0x83, 0xc4, 0x08, 0xc3};
const std::vector<std::uint8_t> kLater{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};

bool accepts(const std::vector<std::uint8_t>& code) {
  return is_trampoline_code(std::as_bytes(std::span{code}));
}

std::vector<std::uint8_t> with_endbr(std::vector<std::uint8_t> code) {
  constexpr std::uint8_t kEndbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
  code.insert(code.begin(), std::begin(kEndbr), std::end(kEndbr));
  return code;
}

TEST(TrampolineCode, IsAnyOfTheFourForms) {
  for (const auto& code : {kEarly, kLater, with_endbr(kEarly), with_endbr(kLater)}) {
    EXPECT_TRUE(accepts(code)) << code.size();
  }
}

TEST(TrampolineCode, IsNothingElse) {
  for (const auto& good : {kEarly, kLater, with_endbr(kEarly), with_endbr(kLater)}) {
    for (std::size_t i = 0; i < good.size(); ++i) {
      auto other = good;
      other[i] ^= 0x40U;
      EXPECT_FALSE(accepts(other)) << "byte " << i;
    }
    auto longer = good;
    longer.push_back(0x90);
    EXPECT_FALSE(accepts(longer));
    EXPECT_FALSE(accepts({good.begin(), good.end() - 1}));
  }
  EXPECT_FALSE(accepts({}));
  EXPECT_FALSE(accepts(with_endbr({})));
}

}  // namespace
}  // namespace pyinject::python
