#include "recorder/recorded_files.hpp"

#include "base/byte_cursor.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "elf/elf_file.hpp"
#include "procfs/reopen.hpp"

#include <cstring>
#include <optional>
#include <string_view>
#include <variant>

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace pyinject::recorder {

namespace {

std::vector<std::byte> from_hexadecimal(std::string_view text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(std::byte{base::parse_number<std::uint8_t>(text.substr(i, 2), 16).value_or(0)});
  }
  return bytes;
}

std::optional<std::string> build_id_of(const std::string& path, std::uint64_t inode) {
  const base::UniqueFd located{::open(path.c_str(), O_PATH | O_CLOEXEC)};
  struct stat facts {};
  if (!located.valid() || ::fstat(located.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      facts.st_ino != inode || !procfs::holds_data(located)) {
    return std::nullopt;
  }
  auto file = elf::ElfFile::open(procfs::reopen(located, O_RDONLY));
  const auto* const elf = std::get_if<elf::ElfFile>(&file);
  return elf == nullptr ? std::nullopt : elf->build_id();
}

}  // namespace

void RecordedFiles::add(const perfdata::Mapping& mapping) {
  if ((mapping.protection & PROT_EXEC) != 0 && mapping.inode != 0 &&
      mapping.file.starts_with('/') && files_.size() < kMost) {
    files_.emplace(mapping.file, mapping.inode);
  }
}

std::vector<perfdata::BuildId> RecordedFiles::build_ids() const {
  std::vector<perfdata::BuildId> ids;
  for (const auto& [path, inode] : files_) {
    if (const auto id = build_id_of(path, inode)) {
      ids.push_back({.id = from_hexadecimal(*id), .file = path});
    }
  }
  return ids;
}

std::vector<std::byte> kernel_build_id(perfdata::Bytes notes) {
  base::ByteCursor cursor{notes};
  const auto padded = [](std::uint32_t size) { return (std::uint64_t{size} + 3) / 4 * 4; };
  while (!cursor.at_end() && !cursor.failed()) {
    const auto name_size = cursor.number<std::uint32_t>();
    const auto size = cursor.number<std::uint32_t>();
    const auto type = cursor.number<std::uint32_t>();
    const auto name = cursor.take(padded(name_size));
    const auto id = cursor.take(padded(size));
    constexpr std::string_view kGnu{"GNU\0", 4};
    if (type == NT_GNU_BUILD_ID && name.size() == kGnu.size() && size <= id.size() &&
        std::memcmp(name.data(), kGnu.data(), kGnu.size()) == 0) {
      return {id.begin(), id.begin() + size};
    }
  }
  return {};
}

}  // namespace pyinject::recorder
