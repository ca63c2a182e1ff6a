#include "weave/greenlet_modules.hpp"

#include "elf/elf_file.hpp"
#include "elf/load_bias.hpp"
#include "pyinject/base/remote_address.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

namespace pyinject::weave {

namespace {

using Part = GreenletModules::Part;

// Of all processes of a recording. A file that is not opened counts as one without names.
constexpr std::size_t kMostOpened = 256;

// Exported by greenlet 3.0 to 3.5 (TGreenlet.hpp; greenlet_greenlet.hpp up to 3.1).
struct NamedPart {
  std::string_view name;
  Part part;
};
constexpr auto kNamedParts = std::to_array<NamedPart>(
    {{"_ZN8greenlet12UserGreenlet13g_initialstubEPv", Part::kStub},
     {"_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object", Part::kRoot},
     {"_ZN8greenlet12UserGreenlet8g_switchEv", Part::kSwitch},
     {"_ZN8greenlet12MainGreenlet8g_switchEv", Part::kSwitch},
     {"_ZN8greenlet8Greenlet13g_switchstackEv", Part::kSwitchStack}});

}  // namespace

bool is_greenlet_module(std::string_view path) {
  const auto name = path.substr(path.rfind('/') + 1);
  return path.starts_with('/') && name.starts_with("_greenlet.") &&
         name.find(".so") != std::string_view::npos;
}

Part GreenletModules::part_of(const unwind::MappedFile* file, std::uint64_t address) {
  if (file == nullptr) {
    return Part::kOther;
  }
  const auto& module = module_of(*file);
  if (!module.is) {
    return Part::kOther;
  }
  const auto function = std::ranges::find_if(module.functions, [address](const Function& each) {
    return each.begin <= address && address < each.end;
  });
  return function == module.functions.end() ? Part::kModule : function->part;
}

bool GreenletModules::has_names(const unwind::MappedFile& file) {
  return module_of(file).functions.size() == kNamedParts.size();
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
    std::array<std::string_view, kNamedParts.size()> names;
    std::ranges::transform(kNamedParts, names.begin(), &NamedPart::name);
    const auto symbols = elf->find_symbols(names);
    for (const auto& [name, part] : kNamedParts) {
      if (const auto symbol = symbols.find(name); symbol != symbols.end()) {
        const auto begin = bias->apply(symbol->second.address).value();
        module.functions.push_back(
            {.begin = begin, .end = begin + symbol->second.size, .part = part});
      }
    }
    break;
  }
  return module;
}

}  // namespace pyinject::weave
