#include "procfs/limits.hpp"

#include "base/text.hpp"
#include "procfs/read_process_file.hpp"

#include <fmt/format.h>

#include <limits>

namespace pyinject::procfs {

std::optional<std::uint64_t> parse_file_size_limit(std::string_view text) {
  constexpr std::string_view kLine = "Max file size";
  const auto at = text.find(kLine);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  auto soft = base::trim(text.substr(at + kLine.size()));
  soft = soft.substr(0, soft.find_first_of(" \n"));
  return soft == "unlimited" ? std::numeric_limits<std::uint64_t>::max()
                             : base::parse_number<std::uint64_t>(soft);
}

std::optional<std::uint64_t> read_file_size_limit(base::Pid pid) {
  const auto text = read_process_file(fmt::format("/proc/{}/limits", pid.value()));
  return text ? parse_file_size_limit(*text) : std::nullopt;
}

}  // namespace pyinject::procfs
