#include "python/stacks/code_description.hpp"

#include "python/stacks/code_objects.hpp"
#include "python/stacks/remote_text.hpp"

#include <algorithm>

namespace pyinject::python {

std::string to_utf8(const TextUnits& units) {
  const bool known = units.width == 1 || units.width == 2 || units.width == 4;
  return known ? to_utf8(units.bytes, units.width) : std::string{};
}

CodeDescription::CodeDescription(const TextUnits& qualname, const TextUnits& file,
                                 std::span<const std::byte> lines, std::int32_t first_line,
                                 std::uint32_t byte_code)
    : names_{.qualname = to_utf8(qualname),
             .file = to_utf8(file),
             .first_line = static_cast<std::uint32_t>(std::max(first_line, 0))},
      lines_{lines, names_.first_line},
      byte_code_{byte_code} {}

std::uint32_t CodeDescription::line_at(std::uint64_t offset) const {
  // 3.12, for a call that has not started: the instruction before the first one.
  const std::uint64_t instruction = offset < byte_code_ ? 0 : offset - byte_code_;
  return offset + sizeof(std::uint16_t) < byte_code_ ? 0 : lines_.line_at(instruction);
}

bool CodeDescription::is_init_cleanup() const { return pyinject::python::is_init_cleanup(names_); }

}  // namespace pyinject::python
