#include "inspect/alike_text.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::inspect {

namespace {

constexpr std::string_view kAddress = "0x";

// Removes an address from the front of TEXT, with all before it; returns these two.
std::pair<std::string_view, std::string_view> take_address(std::string_view& text) {
  const auto begin = std::min(text.find(kAddress), text.size());
  const auto digits = std::min(begin + kAddress.size(), text.size());
  const auto end = std::min(text.find_first_not_of("0123456789abcdef.", digits), text.size());
  const std::pair result{text.substr(0, begin), text.substr(begin, end - begin)};
  text.remove_prefix(end);
  return result;
}

}  // namespace

std::string common_text(std::string_view one, std::string_view other) {
  std::string result;
  while (!one.empty()) {
    const auto [before, address] = take_address(one);
    const auto [unused, its] = take_address(other);
    result += before;
    result += address == its ? address : std::string_view{"0x..."};
  }
  return result;
}

std::string without_addresses(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto [before, address] = take_address(text);
    result.append(before).append(address.empty() ? "" : kAddress);
  }
  return result;
}

}  // namespace pyinject::inspect
