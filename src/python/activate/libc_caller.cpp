#include "python/activate/libc_caller.hpp"

#include "elf/load_bias.hpp"
#include "procfs/open_mapped.hpp"

#include <utility>

namespace pyinject::python {

namespace {

constexpr int kMostCallers = 32;

}  // namespace

std::unique_ptr<LibcCaller> LibcCaller::open(base::Pid pid,
                                             const std::vector<procfs::Mapping>& maps,
                                             base::RemoteAddress inside) {
  const auto* code = procfs::find_mapping(maps, inside);
  if (code == nullptr) {
    return nullptr;
  }
  auto fd = procfs::open_mapped_file(pid, *code);
  if (!std::holds_alternative<base::UniqueFd>(fd)) {
    return nullptr;
  }
  auto opened = elf::ElfFile::open(std::get<base::UniqueFd>(std::move(fd)));
  const auto* file = std::get_if<elf::ElfFile>(&opened);
  if (file == nullptr) {
    return nullptr;
  }
  const auto bias = elf::load_bias(file->segments(), code->begin, code->offset, true);
  auto info = elf::CallFrameInfo::of(*file);
  if (!bias || !info) {
    return nullptr;
  }
  return std::unique_ptr<LibcCaller>{new LibcCaller{std::move(*info), *bias, *code}};
}

std::optional<base::RemoteAddress> LibcCaller::find(const memory::MemoryReader& memory,
                                                    const tracee::Registers& registers) const {
  auto pc = registers.instruction_pointer();
  auto stack = registers.stack_pointer();
  auto frame = registers.frame_pointer();
  for (int depth = 0; depth < kMostCallers; ++depth) {
    if (!code_.contains(pc)) {
      return pc;
    }
    // A return address may be the first one after its function: the call itself is inside.
    const auto rule = info_.rule_at(bias_.remove(depth == 0 ? pc : pc - 1));
    if (!rule) {
      return std::nullopt;
    }
    const auto cfa =
        (rule->from_frame_pointer ? frame : stack) + static_cast<std::uint64_t>(rule->frame_offset);
    const auto caller = memory.read_pointer(cfa + static_cast<std::uint64_t>(rule->return_address));
    if (!caller || cfa < stack) {
      return std::nullopt;
    }
    if (rule->saved_frame_pointer) {
      const auto saved =
          memory.read_pointer(cfa + static_cast<std::uint64_t>(*rule->saved_frame_pointer));
      if (!saved) {
        return std::nullopt;
      }
      frame = *saved;
    }
    pc = *caller;
    stack = cfa;
  }
  return std::nullopt;
}

}  // namespace pyinject::python
