#include "weave/greenlet_modules.hpp"

#include "elf/elf_file.hpp"
#include "elf/load_bias.hpp"
#include "pyinject/base/remote_address.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace pyinject::weave {

namespace {

using Part = GreenletModules::Part;

// Of all processes of a recording. A file that is not opened counts as one without names.
constexpr std::size_t kMostOpened = 256;

}  // namespace

Part GreenletModules::part_of(const unwind::MappedFile* file, std::uint64_t address) {
  if (file == nullptr) {
    return Part::kOther;
  }
  const auto& module = module_of(*file);
  if (!module.is) {
    return Part::kOther;
  }
  const auto function = std::ranges::find_if(module.functions, [address](const auto& each) {
    return each.begin <= address && address < each.end;
  });
  return function == module.functions.end() ? Part::kModule : function->part;
}

bool GreenletModules::has_names(const unwind::MappedFile& file) {
  return module_of(file).functions.size() == elf::kGreenletFunctions;
}

const GreenletModules::Module& GreenletModules::module_of(const unwind::MappedFile& file) {
  const auto known = known_.find(&file);
  return known != known_.end() ? known->second : known_.emplace(&file, load(file)).first->second;
}

GreenletModules::Module GreenletModules::load(const unwind::MappedFile& file) {
  Module module{.is = is_module(file), .functions = {}};
  if (!module.is || opened_ == kMostOpened) {
    return module;
  }
  ++opened_;
  for (auto& candidate : files_.candidates(file)) {
    auto opened = elf::ElfFile::open(std::move(candidate));
    const auto* const elf = std::get_if<elf::ElfFile>(&opened);
    if (elf == nullptr || (!file.build_id.empty() && elf->build_id() != file.build_id)) {
      continue;
    }
    const auto bias = elf::load_bias(elf->segments(), base::RemoteAddress{file.begin}, file.offset,
                                     file.executable);
    if (!bias) {
      continue;
    }
    module.functions = elf::greenlet_functions(*elf, *bias);
    break;
  }
  return module;
}

}  // namespace pyinject::weave
