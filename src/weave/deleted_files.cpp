#include "weave/deleted_files.hpp"

#include "base/text.hpp"
#include "elf/elf_file.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include <fcntl.h>

namespace pyinject::weave {

namespace {

std::vector<std::byte> bytes_of(std::string_view hexadecimal) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < hexadecimal.size(); at += 2) {
    bytes.push_back(static_cast<std::byte>(
        base::parse_number<std::uint8_t>(hexadecimal.substr(at, 2), 16).value_or(0)));
  }
  return bytes;
}

}  // namespace

DeletedFiles::DeletedFiles(const unwind::AddressSpaces& spaces) {
  constexpr std::string_view kDeleted = " (deleted)";
  constexpr std::size_t kMost = 4096;
  for (const auto& mapped : spaces.files()) {
    if (mapped.executable && mapped.path.starts_with('/') && !mapped.path.starts_with("/memfd:") &&
        mapped.path.ends_with(kDeleted) && all_.size() < kMost) {
      all_.push_back(&mapped);
    }
  }
  std::ranges::sort(all_, {}, &unwind::MappedFile::begin);
}

void DeletedFiles::note(std::span<const std::uint64_t> addresses) {
  if (all_.empty()) {
    return;
  }
  for (const auto address : addresses) {
    const auto behind = std::ranges::upper_bound(all_, address, {}, &unwind::MappedFile::begin);
    if (behind != all_.begin() && address < (*std::prev(behind))->end) {
      noted_.try_emplace((*std::prev(behind))->path, *std::prev(behind));
    }
  }
}

std::vector<ReplacedFile> DeletedFiles::replace(unwind::FileFinder& files,
                                                std::vector<perfdata::BuildId>& ids) const {
  std::vector<ReplacedFile> replaced;
  constexpr std::size_t kMost = 16;
  constexpr std::size_t kMostOfId = 40;  // digits
  for (const auto& [path, mapped] : noted_) {
    for (auto& file : files.candidates(*mapped)) {
      base::UniqueFd copy{::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)};
      const auto opened = elf::ElfFile::open(std::move(file));
      const auto* const elf = std::get_if<elf::ElfFile>(&opened);
      const auto id = elf == nullptr ? std::nullopt : elf->build_id();
      if (id && id->size() <= kMostOfId && copy.valid() && replaced.size() < kMost) {
        ids.push_back({.id = bytes_of(*id), .file = mapped->path});
        replaced.push_back({.path = mapped->path, .file = std::move(copy)});
        break;
      }
    }
  }
  return replaced;
}

}  // namespace pyinject::weave
