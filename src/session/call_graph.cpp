#include "pyinject/session/call_graph.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::session {

namespace {

constexpr std::uint64_t kReserve = 8192;  // what a thread may use more than at the attach
constexpr std::uint64_t kLeastDump = 16384;
constexpr std::uint64_t kMostDump = 65528;  // the kernel's limit, a multiple of 8

// Debian's 3.14 keeps a frame pointer in the evaluator although the build has none elsewhere: with
// fp perf names the innermost Python function. 3.12 and 3.13 show none at all with fp.
bool names_leaf_with_fp(const CallGraphFacts& target) {
  return target.frame_pointers || target.version >= python::Version{.major = 3, .minor = 14};
}

std::string first_without(const std::vector<CallGraphFacts>& targets) {
  const auto found = std::ranges::find(targets, false, &CallGraphFacts::frame_pointers);
  return fmt::format("pid {} (Python {})", found->pid.value(), python::to_string(found->version));
}

}  // namespace

std::uint64_t dump_size(std::uint64_t used) {
  if (used > kMostDump) {
    return kMostDump;
  }
  const std::uint64_t rounded = (used + kReserve + 1023) / 1024 * 1024;
  return std::clamp(rounded, kLeastDump, kMostDump);
}

CallGraphChoice choose_call_graph(const std::vector<CallGraphFacts>& targets, bool libunwind) {
  if (std::ranges::all_of(targets, &CallGraphFacts::frame_pointers)) {
    return {.arguments = {"--call-graph", "fp"}, .note = {}};
  }
  const std::string who = first_without(targets) + " was built without frame pointers: ";
  if (!libunwind && std::ranges::all_of(targets, names_leaf_with_fp)) {
    return {.arguments = {"--call-graph", "fp"},
            .note = who +
                    "only the innermost Python function of each sample will be named, not its "
                    "callers"};
  }
  std::uint64_t used = 0;
  for (const auto& target : targets) {
    used = std::max(used, target.stack_bytes.value_or(0));
  }
  const std::uint64_t size = dump_size(used);
  CallGraphChoice choice{.arguments = {"--call-graph", fmt::format("dwarf,{}", size)}, .note = {}};
  choice.note =
      who + (libunwind ? "only the innermost Python function of each sample will be named, not its "
                         "callers"
                       : "this perf unwinds by libdw and will name no Python function in it; perf "
                         "6.x names the innermost one: --perf PATH");
  choice.dump_bytes = size;
  if (used > size) {
    choice.note += fmt::format("; stacks of up to {} bytes are cut at {}", used, size);
  }
  return choice;
}

}  // namespace pyinject::session
