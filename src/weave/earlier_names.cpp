#include "weave/earlier_names.hpp"

#include "elf/function_names.hpp"
#include "pyinject/base/remote_address.hpp"

#include <array>
#include <string_view>
#include <variant>

namespace pyinject::weave {

namespace {

// FILE.names/python, FILE.names/python-PID: the images have the addresses of the process.
bool is_image(const unwind::MappedFile& file) {
  constexpr std::string_view kDirectory = ".names/python";
  const auto at = file.path.rfind('/');
  if (at == std::string::npos || file.begin != file.offset) {
    return false;
  }
  const auto directory = file.path.rfind(kDirectory);
  return directory != std::string::npos && directory + std::string_view{".names"}.size() == at;
}

}  // namespace

EarlierNames::EarlierNames(const unwind::AddressSpaces& spaces, unwind::FileFinder& files,
                           const perfdata::Input& input)
    : spaces_{spaces}, files_{files}, own_{input} {}

std::optional<elf::ElfFile> EarlierNames::open(const unwind::MappedFile& mapped) {
  const auto file = own_.identified(mapped);
  std::vector<base::UniqueFd> candidates;
  if (auto own = own_.image(file.build_id); own.valid()) {
    candidates.push_back(std::move(own));
  } else {
    candidates = files_.candidates(file);
  }
  for (auto& candidate : candidates) {
    if (!candidate.valid()) {
      continue;
    }
    auto opened = elf::ElfFile::open(std::move(candidate));
    auto* const elf = std::get_if<elf::ElfFile>(&opened);
    if (elf != nullptr && !file.build_id.empty() && elf->build_id() == file.build_id) {
      return std::move(*elf);
    }
  }
  return std::nullopt;
}

const std::optional<elf::ElfFile>& EarlierNames::image(const unwind::MappedFile& file) {
  const auto known = images_.find(file.path);
  return known != images_.end() ? known->second
                                : images_.emplace(file.path, open(file)).first->second;
}

const std::string& EarlierNames::name(std::uint32_t pid, std::uint64_t time,
                                      std::uint64_t address) {
  const auto* const file = spaces_.find(pid, time, address);
  if (file == nullptr || !is_image(*file)) {
    return none_;
  }
  const auto [entry, fresh] = names_.try_emplace({file->path, address});
  const auto& elf = image(*file);
  if (fresh && elf) {
    const std::array addresses{base::ElfAddress{address}};
    entry->second = elf::function_names(*elf, addresses).front();
  }
  return entry->second;
}

}  // namespace pyinject::weave
