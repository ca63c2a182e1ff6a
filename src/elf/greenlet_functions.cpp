#include "elf/greenlet_functions.hpp"

#include <algorithm>
#include <array>

namespace pyinject::elf {

namespace {

// Exported by greenlet 3.0 to 3.5 (TGreenlet.hpp; greenlet_greenlet.hpp up to 3.1).
struct NamedPart {
  std::string_view name;
  GreenletPart part;
};
constexpr std::array<NamedPart, kGreenletFunctions> kNamedParts{
    {{"_ZN8greenlet12UserGreenlet13g_initialstubEPv", GreenletPart::kStub},
     {"_ZN8greenlet12UserGreenlet15inner_bootstrapEP9_greenletP7_object", GreenletPart::kRoot},
     {"_ZN8greenlet12UserGreenlet8g_switchEv", GreenletPart::kSwitch},
     {"_ZN8greenlet12MainGreenlet8g_switchEv", GreenletPart::kSwitch},
     {"_ZN8greenlet8Greenlet13g_switchstackEv", GreenletPart::kSwitchStack}}};

}  // namespace

bool is_greenlet_module(std::string_view path) {
  const auto name = path.substr(path.rfind('/') + 1);
  return path.starts_with('/') && name.starts_with("_greenlet.") &&
         name.find(".so") != std::string_view::npos;
}

std::vector<GreenletFunction> greenlet_functions(const ElfFile& module, base::LoadBias bias,
                                                 const base::Cancellation& cancellation) {
  std::array<std::string_view, kNamedParts.size()> names;
  std::ranges::transform(kNamedParts, names.begin(), &NamedPart::name);
  const auto symbols = module.find_symbols(names, cancellation);
  std::vector<GreenletFunction> functions;
  functions.reserve(kNamedParts.size());
  for (const auto& [name, part] : kNamedParts) {
    if (const auto symbol = symbols.find(name); symbol != symbols.end()) {
      const auto begin = bias.apply(symbol->second.address).value();
      functions.push_back({.begin = begin, .end = begin + symbol->second.size, .part = part});
    }
  }
  return functions;
}

}  // namespace pyinject::elf
