#include "live/greenlet_stacks.hpp"

#include "elf/elf_file.hpp"
#include "elf/load_bias.hpp"
#include "procfs/open_mapped.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/deadline.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <variant>

namespace pyinject::live {

namespace {

// A file with greenlet's name can have any number of symbols.
constexpr std::chrono::milliseconds kTimeForModule{100};
constexpr std::chrono::seconds kPatienceForModule{10};

}  // namespace

void GreenletStacks::add(base::Pid pid) {
  remove(pid);
  look_at(pid, processes_[pid]);
}

void GreenletStacks::remove(base::Pid pid) {
  processes_.erase(pid);
  tables_.forget(pid);
}

// Each look reads all mappings of the process.
void GreenletStacks::look() {
  constexpr std::size_t kAtOnce = 16;
  for (auto left = std::min(processes_.size(), kAtOnce); left > 0; --left) {
    auto next = processes_.upper_bound(latest_);
    next = next == processes_.end() ? processes_.begin() : next;
    latest_ = next->first;
    look_at(next->first, next->second);
  }
}

void GreenletStacks::look_at(base::Pid pid, Module& module) {
  if (!module.examined) {
    const auto maps = procfs::read_maps(pid);
    if (!maps) {
      return;
    }
    const auto mapping = std::ranges::find_if(*maps, [](const procfs::Mapping& each) {
      return each.executable && elf::is_greenlet_module(each.path);
    });
    if (mapping == maps->end()) {
      return;
    }
    examine(pid, *mapping, module);
  }
  if (!module.functions.empty()) {
    (void)tables_.scan(pid);
  }
}

void GreenletStacks::examine(base::Pid pid, const procfs::Mapping& mapping, Module& module) {
  module.examined = true;
  module.begin = mapping.begin.value();
  module.end = mapping.end.value();
  auto opened = procfs::open_mapped_file(pid, mapping);
  auto* const descriptor = std::get_if<base::UniqueFd>(&opened);
  if (descriptor == nullptr) {
    return;
  }
  const auto parsed = elf::ElfFile::open(std::move(*descriptor));
  const auto* const elf = std::get_if<elf::ElfFile>(&parsed);
  const auto bias = elf == nullptr ? std::nullopt
                                   : elf::load_bias(elf->segments(), mapping.begin, mapping.offset,
                                                    mapping.executable);
  if (bias) {
    const base::Cancellation patience{base::Cancellation::never(),
                                      base::Deadline::after(kPatienceForModule),
                                      base::CpuLimit{kTimeForModule}};
    auto functions = elf::greenlet_functions(*elf, *bias, patience);
    if (functions.size() == elf::kGreenletFunctions) {
      module.functions = std::move(functions);
    }
  }
}

// The outermost function that only a greenlet's own stack has tells. What is below is of others. A
// function of the module inside of it, on the stack of the greenlet that runs, may switch: then the
// Python functions can be those of another greenlet.
bool GreenletStacks::has(const bpf::Stack& stack) const {
  const auto process = processes_.find(base::Pid{static_cast<pid_t>(stack.pid)});
  if (process == processes_.end() || process->second.functions.empty() || stack.ungrouped) {
    return false;
  }
  const auto& module = process->second;
  const auto innermost = std::ranges::find_if(stack.native, [&](std::uint64_t address) {
    return module.begin <= address && address < module.end;
  });
  return innermost != stack.native.end() &&
         std::ranges::any_of(module.functions, [at = *innermost](const auto& function) {
           return function.part == elf::GreenletPart::kRoot && function.begin <= at &&
                  at < function.end;
         });
}

}  // namespace pyinject::live
