#include "record/extension_modules.hpp"

#include "elf/elf_file.hpp"
#include "elf/frame_pointers.hpp"
#include "procfs/maps.hpp"
#include "procfs/open_mapped.hpp"

#include <string_view>
#include <variant>

namespace pyinject::record {

namespace {

// "x.cpython-315-x86_64-linux-gnu.so", "x.abi3.so", and every file below a package directory.
bool is_extension(std::string_view path) {
  const auto contains = [path](std::string_view part) {
    return path.find(part) != std::string_view::npos;
  };
  return contains("/site-packages/") || contains("/dist-packages/") || contains(".abi3.so") ||
         (contains(".cpython-") && path.ends_with(".so"));
}

bool keeps_frame_pointers(base::Pid pid, const procfs::Mapping& mapping) {
  auto file = procfs::open_mapped_file(pid, mapping);
  auto* const descriptor = std::get_if<base::UniqueFd>(&file);
  if (descriptor == nullptr) {
    return true;
  }
  const auto opened = elf::ElfFile::open(std::move(*descriptor));
  const auto* const elf = std::get_if<elf::ElfFile>(&opened);
  // In small files no function is large enough to tell.
  return elf == nullptr || elf::frame_pointer_share(*elf).value_or(1) >= 0.5;
}

}  // namespace

std::optional<std::string> ExtensionModules::without_frame_pointers(base::Pid pid) {
  const auto maps = procfs::read_maps(pid);
  if (!maps) {
    return std::nullopt;
  }
  for (const auto& mapping : *maps) {
    if (!mapping.executable || mapping.inode == 0 || !is_extension(mapping.path)) {
      continue;
    }
    const std::uint64_t device = std::uint64_t{mapping.device_major} << 32U | mapping.device_minor;
    const auto known = known_.try_emplace({device, mapping.inode}, true);
    if (known.second) {
      known.first->second = keeps_frame_pointers(pid, mapping);
    }
    if (!known.first->second) {
      return mapping.path;
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::record
