#include "elf/usdt.hpp"

#include "base/byte_cursor.hpp"
#include "elf/elf_impl.hpp"

#include <algorithm>
#include <utility>

namespace pyinject::elf {

namespace {

constexpr std::uint64_t kMostNoteBytes = std::uint64_t{16} << 20U;  // libpython has some KiB
constexpr std::size_t kMostProbes = 65536;
constexpr std::uint32_t kProbe = 3;  // the only note type
constexpr std::string_view kOwner{"stapsdt\0", 8};

constexpr std::uint64_t padded(std::uint64_t size) { return (size + 3) / 4 * 4; }

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Removes the text up to the next NUL from LEFT; nullopt: no NUL.
std::optional<std::string> take_text(std::string_view& left) {
  const auto end = left.find('\0');
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  std::string text{left.substr(0, end)};
  left.remove_prefix(end + 1);
  return text;
}

std::optional<UsdtProbe> parse_description(std::span<const std::byte> description,
                                           std::optional<base::ElfAddress> base) {
  base::ByteCursor cursor{description};
  const auto location = cursor.number<std::uint64_t>();
  const auto noted_base = cursor.number<std::uint64_t>();
  const auto semaphore = cursor.number<std::uint64_t>();
  if (cursor.failed()) {
    return std::nullopt;
  }
  auto left = as_text(cursor.left());
  auto provider = take_text(left);
  auto name = take_text(left);
  auto arguments = take_text(left);
  if (!provider || !name || !arguments) {
    return std::nullopt;
  }
  const std::uint64_t moved = base ? base->value() - noted_base : 0;
  return UsdtProbe{.provider = std::move(*provider),
                   .name = std::move(*name),
                   .location = base::ElfAddress{location + moved},
                   .semaphore = base::ElfAddress{semaphore == 0 ? 0 : semaphore + moved},
                   .arguments = std::move(*arguments)};
}

}  // namespace

std::vector<UsdtProbe> parse_usdt_notes(std::span<const std::byte> notes,
                                        std::optional<base::ElfAddress> base) {
  std::vector<UsdtProbe> probes;
  base::ByteCursor cursor{notes};
  while (!cursor.at_end() && probes.size() < kMostProbes) {
    const auto name_size = cursor.number<std::uint32_t>();
    const auto description_size = cursor.number<std::uint32_t>();
    const auto type = cursor.number<std::uint32_t>();
    const auto owner = cursor.take(padded(name_size));
    // The last note may lack its padding.
    const auto description = cursor.take(description_size);
    if (cursor.failed()) {
      break;
    }
    cursor.take(
        std::min<std::uint64_t>(padded(description_size) - description_size, cursor.left().size()));
    if (type != kProbe || as_text(owner).substr(0, name_size) != kOwner) {
      continue;
    }
    if (auto probe = parse_description(description, base)) {
      probes.push_back(std::move(*probe));
    }
  }
  return probes;
}

std::vector<UsdtProbe> read_usdt_probes(const ElfFile& file) {
  const Elf_Data* const data = section_data(find_section(file.impl().elf(), ".note.stapsdt"));
  if (data == nullptr || data->d_buf == nullptr || data->d_size > kMostNoteBytes) {
    return {};
  }
  const auto base = file.section(".stapsdt.base");
  return parse_usdt_notes({static_cast<const std::byte*>(data->d_buf), data->d_size},
                          base ? std::optional{base->address} : std::nullopt);
}

std::optional<std::uint64_t> file_offset(std::span<const Segment> segments,
                                         base::ElfAddress address, std::uint64_t size) {
  for (const Segment& segment : segments) {
    const std::uint64_t skip = address.value() - segment.address.value();
    if (segment.is_load() && address >= segment.address && skip <= segment.file_size &&
        size <= segment.file_size - skip && segment.offset <= ~skip) {
      return segment.offset + skip;
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::elf
