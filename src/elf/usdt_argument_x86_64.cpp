// Translates the location of a probe argument from assembler syntax to that of uprobe events, which
// only have whole registers, named as in struct pt_regs.
#include "base/text.hpp"
#include "elf/usdt.hpp"

#include <algorithm>
#include <array>

namespace pyinject::elf {

namespace {

constexpr std::array<std::string_view, 4> kLettered{"ax", "bx", "cx", "dx"};
constexpr std::array<std::string_view, 4> kPointers{"si", "di", "bp", "sp"};

template <std::size_t kCount>
bool is_one_of(std::string_view text, const std::array<std::string_view, kCount>& names) {
  return std::ranges::find(names, text) != names.end();
}

// r8 to r15: "r12", "r12d", "r12w", "r12b". Empty: none of these.
std::string numbered_register(std::string_view name) {
  if (!name.starts_with('r')) {
    return {};
  }
  auto digits = name.substr(1);
  if (!digits.empty() && std::string_view{"dwb"}.find(digits.back()) != std::string_view::npos) {
    digits.remove_suffix(1);
  }
  const auto number = base::parse_number<unsigned>(digits);
  return number && *number >= 8 && *number <= 15 && digits.front() != '0'
             ? "%r" + std::string{digits}
             : std::string{};
}

// The register that contains NAME at its lowest bit, which excludes %ah. Empty: unknown.
std::string register_of(std::string_view name) {
  if (!name.starts_with('%')) {
    return {};
  }
  name.remove_prefix(1);
  if (auto numbered = numbered_register(name); !numbered.empty()) {
    return numbered;
  }
  auto plain = name;
  if (plain.size() == 3 && (plain[0] == 'r' || plain[0] == 'e')) {
    plain.remove_prefix(1);
  }
  if (is_one_of(plain, kLettered) || is_one_of(plain, kPointers)) {
    return "%" + std::string{plain};
  }
  if (plain.size() == 2 && plain[1] == 'l' && std::string_view{"abcd"}.find(plain[0]) < 4) {
    return "%" + std::string{plain[0]} + "x";
  }
  if (plain.size() == 3 && plain[2] == 'l' && is_one_of(plain.substr(0, 2), kPointers)) {
    return "%" + std::string{plain.substr(0, 2)};
  }
  return {};
}

// "-24(%rbp)", "(%rax)".
std::string memory_of(std::string_view place) {
  const auto open = place.find('(');
  if (open == std::string_view::npos || !place.ends_with(')')) {
    return {};
  }
  auto distance = place.substr(0, open);
  const auto name = place.substr(open + 1, place.size() - open - 2);
  const auto base = register_of(name);
  if (distance.starts_with('+')) {
    distance.remove_prefix(1);
  }
  const auto bytes = distance.empty() ? std::optional<std::int64_t>{0}
                                      : base::parse_number<std::int64_t>(distance);
  // Addresses need whole registers.
  if (base.empty() || !bytes || !name.starts_with("%r") || name.size() > 4 ||
      (name.size() == 4 &&
       std::string_view{"0123456789xip"}.find(name.back()) == std::string_view::npos)) {
    return {};
  }
  return (*bytes < 0 ? "" : "+") + std::to_string(*bytes) + "(" + base + ")";
}

}  // namespace

std::optional<UsdtArgument> parse_usdt_argument(std::string_view text) {
  const auto at = text.find('@');
  const auto size = base::parse_number<int>(text.substr(0, at));
  if (at == std::string_view::npos || !size ||
      !(*size == 1 || *size == 2 || *size == 4 || *size == 8 || *size == -1 || *size == -2 ||
        *size == -4 || *size == -8)) {
    return std::nullopt;
  }
  const auto place = text.substr(at + 1);
  auto fetch = place.starts_with('%') ? register_of(place) : memory_of(place);
  if (fetch.empty()) {
    return std::nullopt;
  }
  return UsdtArgument{
      .bytes = *size < 0 ? -*size : *size, .is_signed = *size < 0, .fetch = std::move(fetch)};
}

}  // namespace pyinject::elf
