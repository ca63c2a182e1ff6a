#include "bpf/greenlet_module.hpp"

#include "elf/greenlet_functions.hpp"
#include "elf/load_bias.hpp"
#include "elf/thread_locals.hpp"
#include "memory/process_memory.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace pyinject::bpf {

const procfs::Mapping* find_greenlet_module(const std::vector<procfs::Mapping>& maps) {
  const auto found = std::ranges::find_if(maps, [](const procfs::Mapping& each) {
    return each.executable && elf::is_greenlet_module(each.path);
  });
  return found == maps.end() ? nullptr : &*found;
}

std::optional<GreenletModule> open_greenlet_module(base::Pid pid, const procfs::Mapping& code) {
  auto opened = procfs::open_mapped_file(pid, code);
  auto* const descriptor = std::get_if<base::UniqueFd>(&opened);
  if (descriptor == nullptr) {
    return std::nullopt;
  }
  auto parsed = elf::ElfFile::open(std::move(*descriptor));
  auto* const elf = std::get_if<elf::ElfFile>(&parsed);
  const auto bias = elf == nullptr
                        ? std::nullopt
                        : elf::load_bias(elf->segments(), code.begin, code.offset, code.executable);
  return bias ? std::optional{GreenletModule{.file = std::move(*elf), .bias = *bias}}
              : std::nullopt;
}

namespace {

// Throws base::SystemError if descriptors or memory are short.
std::uint32_t number_of_thread_locals(base::Pid pid) {
  const auto maps = procfs::read_maps(pid);
  const auto* const code = maps ? find_greenlet_module(*maps) : nullptr;
  if (code == nullptr) {
    return 0;
  }
  // musl's vector is another one.
  const bool musl = std::ranges::any_of(*maps, [](const procfs::Mapping& each) {
    return each.path.find("/ld-musl-") != std::string::npos;
  });
  const auto module = musl ? std::nullopt : open_greenlet_module(pid, *code);
  const auto place = module ? elf::place_of_thread_locals_number(module->file) : std::nullopt;
  const auto number =
      place ? memory::ProcessMemory{pid}.read_value<std::uint64_t>(module->bias.apply(*place))
            : std::nullopt;
  // 0: the loader is still at work.
  return number && *number < kNoThreadLocals ? static_cast<std::uint32_t>(*number)
                                             : kNoThreadLocals;
}

}  // namespace

std::uint32_t thread_locals_of_greenlet(base::Pid pid) {
  try {
    return number_of_thread_locals(pid);
  } catch (const base::SystemError&) {
    return 0;
  }
}

}  // namespace pyinject::bpf
