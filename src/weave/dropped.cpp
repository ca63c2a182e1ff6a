#include "base/text.hpp"
#include "pyinject/weave/weave_summary.hpp"

#include <fmt/format.h>

namespace pyinject::weave {

namespace {

std::string what_is_lost(const Dropped& dropped) {
  switch (dropped.limit) {
    case Limit::kUnwindSteps:
      return base::counted(dropped.count, "stack is", "stacks are") +
             " cut: the unwind tables of the process take too long";
    case Limit::kUnwindTables:
      return base::counted(dropped.count, "stack is", "stacks are") +
             " cut: the unwind tables of the process take too much memory";
    case Limit::kForkedMappings:
      return base::counted(dropped.count, "forked process has", "forked processes have") +
             " lost the mappings, which take too much memory";
    case Limit::kPerfMap:
      return "its perf map is too large: only " +
             base::counted(dropped.count, "name is", "names are") + " known";
    case Limit::kLines:
      return base::counted(dropped.count, "function has", "functions have") +
             " no line numbers: the functions of the process have too many lines";
    case Limit::kNames:
      return base::counted(dropped.count, "name is", "names are") +
             " lost: the process has too many functions";
    case Limit::kPythonStacks:
      return base::counted(dropped.count, "stack has", "stacks have") +
             " no Python functions: the stacks of the process take too much memory";
    case Limit::kNativeStacks:
      return base::counted(dropped.count, "stack is", "stacks are") +
             " incomplete: the stacks of the process take too much memory";
    case Limit::kDeferredChains:
      return base::counted(dropped.count, "stack has", "stacks have") +
             " no user part: it was recorded too long after the sample";
  }
  return {};
}

}  // namespace

std::string phrase(const Dropped& dropped) {
  const auto command =
      dropped.command.empty() ? "" : fmt::format(" ({})", base::printable(dropped.command));
  return fmt::format("pid {}{}: {}", dropped.pid, command, what_is_lost(dropped));
}

}  // namespace pyinject::weave
