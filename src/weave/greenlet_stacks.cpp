#include "weave/greenlet_stacks.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace pyinject::weave {

namespace {

using Part = GreenletModules::Part;

// The index in CHAIN of the outermost function of the greenlet that runs; nullopt: it is that of
// the thread itself, as far as the module's functions tell.
std::optional<std::size_t> root_of_greenlet(const SampleWork& work, const std::vector<Part>& parts,
                                            bool names) {
  bool python = false;  // inside of the function
  for (std::size_t i = 0; i < parts.size(); ++i) {
    python = python || work.kinds[i] != AddressKind::kOther;
    // The stack of a greenlet that starts another one has the stub of that one before it switches.
    // Without names, it can be any function of the module that runs Python.
    if (parts[i] == Part::kRoot || (python && parts[i] == Part::kStub) ||
        (python && !names && parts[i] == Part::kModule)) {
      return i;
    }
  }
  return std::nullopt;
}

// Whether the innermost functions may be those of a switch, during which the C stack and the
// thread's Python functions can be those of different greenlets. g_switch() calls g_switchstack(),
// which calls slp_switch(), which restores the stack from a copy: before that is done, the stack
// may lack these callers. Frame pointers may show one of them alone.
bool may_switch(const SampleWork& work, const std::vector<Part>& parts,
                std::optional<std::size_t> root, bool by_frame_pointer) {
  const auto evaluator = std::ranges::find_if(
      work.kinds, [](AddressKind kind) { return kind != AddressKind::kOther; });
  const auto end = static_cast<std::ptrdiff_t>(root.value_or(parts.size()));
  const auto inside = parts.begin() + std::min(evaluator - work.kinds.begin(), end);
  const auto has = [&](Part part) { return std::find(parts.begin(), inside, part) != inside; };
  const auto functions = inside - parts.begin() - std::count(parts.begin(), inside, Part::kOther);
  if (by_frame_pointer) {
    return functions > 0;
  }
  const bool alone = functions == 0 || (functions == 1 && parts.front() != Part::kOther);
  return has(Part::kSwitchStack) || (!alone && !has(Part::kSwitch));
}

}  // namespace

GreenletStacks::GreenletStacks(const RecordedProcesses& processes, unwind::FileFinder& files)
    : processes_{processes}, modules_{files} {
  for (const auto& file : processes.spaces().files()) {
    if (GreenletModules::is_module(file)) {
      families_.insert(processes.spaces().family(file.mapped_by));
    }
  }
}

bool GreenletStacks::may_be_in(std::uint32_t pid) const {
  return !families_.empty() && families_.contains(processes_.spaces().family(pid));
}

std::vector<GreenletModules::Part> GreenletStacks::parts_of(const SampleWork& work) {
  std::vector<Part> parts;
  if (!may_be_in(work.sample.pid)) {
    return parts;
  }
  for (std::size_t i = 0; i < work.chain.size(); ++i) {
    const auto address = work.chain[i] - (i == 0 ? 0 : 1);  // for callers this is a return address
    const auto part =
        work.kinds[i] != AddressKind::kOther
            ? Part::kOther
            : modules_.part_of(processes_.spaces().find(work.sample.pid, work.sample.time, address),
                               address);
    if (part != Part::kOther) {
      parts.resize(work.chain.size());
      parts[i] = part;
    }
  }
  return parts;
}

void GreenletStacks::end_chain(SampleWork& work, bool by_frame_pointer) {
  const auto parts = parts_of(work);
  if (parts.empty()) {
    return;
  }
  const auto first = std::ranges::find_if(parts, [](Part part) { return part != Part::kOther; });
  const auto innermost = static_cast<std::size_t>(first - parts.begin());
  const auto address = work.chain[innermost] - (innermost == 0 ? 0 : 1);
  const auto* const file = processes_.spaces().find(work.sample.pid, work.sample.time, address);
  const auto root = root_of_greenlet(work, parts, file != nullptr && modules_.has_names(*file));
  work.greenlet_switches = may_switch(work, parts, root, by_frame_pointer);
  // memcpy() or the like, called by the module.
  work.greenlet_copied = work.greenlet_switches && parts.size() > 1 && parts[0] == Part::kOther &&
                         parts[1] != Part::kOther &&
                         !is_of_interpreter(processes_.spaces(), work, work.chain[0]);
  if (!root) {
    return;
  }
  work.in_greenlet = true;
  work.chain.resize(*root + 1);
  work.kinds.resize(*root + 1);
  if (work.registers.size() > *root + 1) {
    work.registers.resize(*root + 1);
  }
  if (work.incomplete_counter != nullptr) {  // of what is below
    --*work.incomplete_counter;
    work.incomplete_counter = nullptr;
  }
}

}  // namespace pyinject::weave
