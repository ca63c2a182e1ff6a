#include "pyinject/python/target.hpp"

#include <fmt/format.h>

namespace pyinject::python {

Version version_from_hex(std::uint64_t hex) {
  const auto byte = [hex](unsigned shift) { return static_cast<std::uint8_t>(hex >> shift); };
  return {.major = byte(24),
          .minor = byte(16),
          .micro = byte(8),
          .level = static_cast<std::uint8_t>(byte(4) & 0xf),
          .serial = static_cast<std::uint8_t>(byte(0) & 0xf)};
}

std::string to_string(const Version& version) {
  std::string text = fmt::format("{}.{}.{}", version.major, version.minor, version.micro);
  switch (version.level) {
    case 0xa:
      return text + fmt::format("a{}", version.serial);
    case 0xb:
      return text + fmt::format("b{}", version.serial);
    case 0xc:
      return text + fmt::format("rc{}", version.serial);
    default:
      return text;
  }
}

std::string version_text(const Target& target) {
  auto text = to_string(target.version);
  if (!target.has_gil) {
    text += " (free-threaded, no GIL)";
  }
  if (target.untested) {
    text += " (untested version)";
  }
  return text;
}

std::string_view name(TrampolineState state) {
  switch (state) {
    case TrampolineState::kOff:
      return "off";
    case TrampolineState::kOnByUs:
      return "on by us";
    case TrampolineState::kOnByItself:
      return "on by itself";
  }
  return "unknown";
}

std::string_view name(OwnerState state) {
  switch (state) {
    case OwnerState::kNone:
      return "none";
    case OwnerState::kLives:
      return "running";
    case OwnerState::kGone:
      return "gone";
    case OwnerState::kUnknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace pyinject::python
