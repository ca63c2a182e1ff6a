#include "procfs/sysctl.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace pyinject::procfs {

std::optional<std::string> read_sysctl(std::string_view name) {
  constexpr std::size_t kMost = 256;  // bytes; sufficient for numbers
  std::string path{name};
  std::ranges::replace(path, '.', '/');
  const auto text = base::read_file("/proc/sys/" + path, kMost);
  return text ? std::optional{std::string{base::trim(*text)}} : std::nullopt;
}

}  // namespace pyinject::procfs
