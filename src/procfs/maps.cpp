#include "procfs/maps.hpp"

#include "base/text.hpp"
#include "procfs/read_process_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::procfs {

namespace {

using base::parse_number;

constexpr std::string_view kDeleted = " (deleted)";

// Removes the text up to the next SEPARATOR from LINE; nullopt: no separator.
std::optional<std::string_view> take(std::string_view& line, char separator) {
  const auto end = line.find(separator);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const auto piece = line.substr(0, end);
  line.remove_prefix(end + 1);
  return piece;
}

template <typename Number>
bool take_number(std::string_view& line, char separator, int base, Number& number) {
  const auto piece = take(line, separator);
  const auto value = piece ? parse_number<Number>(*piece, base) : std::nullopt;
  if (!value) {
    return false;
  }
  number = *value;
  return true;
}

// The kernel escapes only newlines (seq_file_path in show_map_vma, fs/proc/task_mmu.c).
std::string unescape(std::string_view text) {
  constexpr std::string_view kNewline = "\\012";
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const auto at = text.find(kNewline);
    plain.append(text.substr(0, at));
    if (at == std::string_view::npos) {
      break;
    }
    plain.push_back('\n');
    text.remove_prefix(at + kNewline.size());
  }
  return plain;
}

// BEGIN-END PERMS OFFSET MAJOR:MINOR INODE    PATH
std::optional<Mapping> parse_line(std::string_view line) {
  Mapping mapping;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  if (!take_number(line, '-', 16, begin) || !take_number(line, ' ', 16, end) || begin >= end) {
    return std::nullopt;
  }
  const auto permissions = take(line, ' ');
  if (!permissions || permissions->size() != 4) {
    return std::nullopt;
  }
  if (!take_number(line, ' ', 16, mapping.offset) ||
      !take_number(line, ':', 16, mapping.device_major) ||
      !take_number(line, ' ', 16, mapping.device_minor)) {
    return std::nullopt;
  }
  const auto inode_end = std::min(line.find(' '), line.size());
  const auto inode = parse_number<std::uint64_t>(line.substr(0, inode_end));
  if (!inode) {
    return std::nullopt;
  }
  line.remove_prefix(inode_end);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));

  mapping.begin = base::RemoteAddress{begin};
  mapping.end = base::RemoteAddress{end};
  mapping.readable = (*permissions)[0] == 'r';
  mapping.writable = (*permissions)[1] == 'w';
  mapping.executable = (*permissions)[2] == 'x';
  mapping.shared = (*permissions)[3] == 's';
  mapping.inode = *inode;
  if (mapping.inode != 0 && line.ends_with(kDeleted)) {
    mapping.deleted = true;
    line.remove_suffix(kDeleted.size());
  }
  mapping.path = unescape(line);
  return mapping;
}

}  // namespace

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> maps;
  while (!text.empty() && maps.size() < kMaxMappings) {
    const auto end = text.find('\n');
    if (auto mapping = parse_line(text.substr(0, end))) {
      maps.push_back(std::move(*mapping));
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return maps;
}

std::optional<std::vector<Mapping>> read_maps(base::Pid pid) {
  constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  const auto text = read_process_file(fmt::format("/proc/{}/maps", pid.value()), kMostBytes);
  if (!text) {
    return std::nullopt;
  }
  return parse_maps(*text);
}

const Mapping* find_mapping(const std::vector<Mapping>& maps, base::RemoteAddress address) {
  const auto behind = std::ranges::upper_bound(maps, address, {}, &Mapping::begin);
  if (behind == maps.begin()) {
    return nullptr;
  }
  const Mapping& mapping = *std::prev(behind);
  return mapping.contains(address) ? &mapping : nullptr;
}

bool shows(const std::vector<Mapping>& maps, const Mapping& mapping, base::RemoteAddress address,
           std::uint64_t offset) {
  const auto* const found = find_mapping(maps, address);
  return found != nullptr && found->inode == mapping.inode &&
         found->device_major == mapping.device_major &&
         found->device_minor == mapping.device_minor &&
         found->offset + (address.value() - found->begin.value()) == offset;
}

}  // namespace pyinject::procfs
