#include "pyinject/procfs/cmdline.hpp"

#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"

#include <fmt/format.h>

namespace pyinject::procfs {

std::vector<std::string> parse_cmdline(std::string_view text) {
  if (text.empty()) {
    return {};
  }
  if (text.back() == '\0') {
    text.remove_suffix(1);
  }
  const auto pieces = base::split(text, '\0');
  return {pieces.begin(), pieces.end()};
}

std::optional<std::vector<std::string>> read_cmdline(base::Pid pid) {
  const auto text =
      base::read_file(fmt::format("/proc/{}/cmdline", pid.value()), std::size_t{1} << 20);
  if (!text) {
    return std::nullopt;
  }
  return parse_cmdline(*text);
}

std::optional<std::string> parse_environ_value(std::string_view text, std::string_view name) {
  for (const auto entry : base::split(text, '\0')) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string{entry.substr(name.size() + 1)};
    }
  }
  return std::nullopt;
}

std::optional<std::string> read_environ_value(base::Pid pid, std::string_view name) {
  const auto text =
      base::read_file(fmt::format("/proc/{}/environ", pid.value()), std::size_t{4} << 20);
  return text ? parse_environ_value(*text, name) : std::nullopt;
}

std::optional<std::string> read_auxv(base::Pid pid) {
  return base::read_file(fmt::format("/proc/{}/auxv", pid.value()), std::size_t{1} << 16);
}

}  // namespace pyinject::procfs
