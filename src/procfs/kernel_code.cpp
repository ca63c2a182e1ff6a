#include "procfs/kernel_code.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::procfs {

KernelCode find_kernel_code(std::string_view text) {
  KernelCode code;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    at = end + 1;
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos || line.size() < blank + 4) {
      continue;
    }
    const auto name = line.substr(blank + 3);
    if (name != "_text" && name != "_stext" && name != "_etext") {
      continue;
    }
    const auto address = base::parse_number<std::uint64_t>(line.substr(0, blank), 16).value_or(0);
    if (name == "_etext") {
      code.end = address;
    } else if (code.begin == 0) {
      code.begin = address;
    }
  }
  return code;
}

std::vector<Module> parse_modules(std::string_view text) {
  // "ext4 1142784 1 - Live 0xffffffffc0800000"
  constexpr std::size_t kFields = 6;
  std::vector<Module> modules;
  for (const auto line : base::split(text, '\n')) {
    const auto fields = base::split(line, ' ');
    if (fields.size() < kFields || !fields[5].starts_with("0x")) {
      continue;
    }
    const auto size = base::parse_number<std::uint64_t>(fields[1]);
    const auto begin = base::parse_number<std::uint64_t>(fields[5].substr(2), 16);
    if (size && begin && *begin != 0) {
      modules.push_back({.name = std::string{fields[0]}, .begin = *begin, .size = *size});
    }
  }
  return modules;
}

KernelCode read_kernel_code() {
  const base::UniqueFd file{::open("/proc/kallsyms", O_RDONLY | O_CLOEXEC)};
  KernelCode code;
  std::string text;
  std::array<char, 65536> buffer{};
  for (ssize_t got = 0;
       file.valid() && (got = ::read(file.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
    const auto whole = text.rfind('\n') + 1;
    const auto found = find_kernel_code(std::string_view{text}.substr(0, whole));
    code.begin = code.begin == 0 ? found.begin : code.begin;
    code.end = found.end;
    if (code.end != 0) {
      break;
    }
    text.erase(0, whole);
  }
  return code.end > code.begin && code.begin != 0 ? code : KernelCode{};
}

std::vector<Module> read_modules() {
  const auto text = base::read_file("/proc/modules");
  return text ? parse_modules(*text) : std::vector<Module>{};
}

}  // namespace pyinject::procfs
