#include "procfs/proc_mount.hpp"

#include "base/file.hpp"
#include "base/text.hpp"

namespace pyinject::procfs {

namespace {

// The kernel prints hidepid= among the superblock's options, unless it is 0 ("off").
std::string hidepid_in(std::string_view options) {
  constexpr std::string_view kOption = "hidepid=";
  for (const auto option : base::split(options, ',')) {
    if (option.starts_with(kOption)) {
      const auto value = option.substr(kOption.size());
      return value == "0" || value == "off" ? "" : std::string{value};
    }
  }
  return {};
}

}  // namespace

std::optional<std::string> parse_hidden_processes(std::string_view text) {
  constexpr std::size_t kMountPoint = 4;
  constexpr std::size_t kLeast = 10;
  std::optional<std::string> hidden;
  for (const auto line : base::split(text, '\n')) {
    const auto words = base::split(line, ' ');
    if (words.size() >= kLeast && words[kMountPoint] == "/proc") {
      hidden = hidepid_in(words.back());
    }
  }
  return hidden;
}

std::optional<std::string> hidden_processes() {
  const auto text = base::read_file("/proc/self/mountinfo");
  return text ? parse_hidden_processes(*text) : std::nullopt;
}

}  // namespace pyinject::procfs
