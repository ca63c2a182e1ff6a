// The names that an earlier weave gave to the code of a recording, and put into images of its own.
#pragma once

#include "elf/elf_file.hpp"
#include "perfdata/input.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/objects.hpp"
#include "weave/own_files.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::weave {

class EarlierNames {
 public:
  // SPACES and FILES must outlive this object.
  EarlierNames(const unwind::AddressSpaces& spaces, unwind::FileFinder& files,
               const perfdata::Input& input);

  // Name at ADDRESS in an image of an earlier weave; empty: not found.
  [[nodiscard]] const std::string& name(std::uint32_t pid, std::uint64_t time,
                                        std::uint64_t address);

 private:
  [[nodiscard]] const std::optional<elf::ElfFile>& image(const unwind::MappedFile& file);
  [[nodiscard]] std::optional<elf::ElfFile> open(const unwind::MappedFile& mapped);

  const unwind::AddressSpaces& spaces_;
  unwind::FileFinder& files_;
  OwnFiles own_;
  std::map<std::string, std::optional<elf::ElfFile>> images_;
  std::map<std::pair<std::string, std::uint64_t>, std::string> names_;  // by image and address
  std::string none_;
};

}  // namespace pyinject::weave
