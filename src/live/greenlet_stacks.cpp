#include "live/greenlet_stacks.hpp"

#include "bpf/greenlet_module.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/deadline.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

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
    const auto* const mapping = bpf::find_greenlet_module(*maps);
    if (mapping == nullptr) {
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
  if (const auto opened = bpf::open_greenlet_module(pid, mapping)) {
    const base::Cancellation patience{base::Cancellation::never(),
                                      base::Deadline::after(kPatienceForModule),
                                      base::CpuLimit{kTimeForModule}};
    auto functions = elf::greenlet_functions(opened->file, opened->bias, patience);
    if (functions.size() == elf::kGreenletFunctions) {
      module.functions = std::move(functions);
    }
  }
}

// The outermost function that only a greenlet's own stack has tells. What is below is of others. A
// function of the module inside of it, on the stack of the greenlet that runs, may switch: then the
// Python functions can be those of another greenlet.
bool GreenletStacks::has(const sample::Stack& stack) const {
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
