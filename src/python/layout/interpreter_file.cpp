#include "python/layout/interpreter_file.hpp"

#include <fmt/format.h>

#include <utility>

namespace pyinject::python {

std::variant<elf::ElfFile, std::string> open_interpreter(const Target& target) {
  return open_interpreter(target, RunningProcess{target.id.pid});
}

std::variant<elf::ElfFile, std::string> open_interpreter(const Target& target,
                                                         const ProcessImage& image) {
  const auto maps = image.mappings();
  const auto* mapping = maps ? procfs::find_mapping(*maps, target.text_begin) : nullptr;
  if (mapping == nullptr) {
    return std::string{"its interpreter is not mapped any more"};
  }
  auto opened = image.open(*mapping);
  if (const auto* failure = std::get_if<procfs::NotOpened>(&opened)) {
    return fmt::format("cannot open {}: {}", target.interpreter, failure->why);
  }
  auto file = elf::ElfFile::open(std::get<base::UniqueFd>(std::move(opened)));
  if (const auto* failure = std::get_if<elf::NotElf>(&file)) {
    return fmt::format("{}: {}", target.interpreter, failure->why);
  }
  return std::get<elf::ElfFile>(std::move(file));
}

}  // namespace pyinject::python
