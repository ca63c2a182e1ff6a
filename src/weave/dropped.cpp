#include "base/text.hpp"
#include "pyinject/weave/weave_summary.hpp"

#include <fmt/format.h>

namespace pyinject::weave {

namespace {

std::string counted(std::uint64_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string what_is_lost(const Dropped& dropped) {
  switch (dropped.limit) {
    case Limit::kUnwindSteps:
      return counted(dropped.count, "stack is", "stacks are") +
             " cut: its unwind tables take too long";
    case Limit::kUnwindTables:
      return counted(dropped.count, "stack is", "stacks are") +
             " cut: its unwind tables take too much memory";
    case Limit::kForkedMappings:
      return counted(dropped.count, "forked process has", "forked processes have") +
             " no mappings: they take too much memory";
    case Limit::kPerfMap:
      return "its perf map is too large: " +
             counted(dropped.count, "name of it is", "names of it are") + " known";
    case Limit::kLines:
      return counted(dropped.count, "function has", "functions have") +
             " no line numbers: its functions have too many lines";
    case Limit::kNames:
      return counted(dropped.count, "name is", "names are") + " lost: it has too many functions";
    case Limit::kPythonStacks:
      return counted(dropped.count, "stack has", "stacks have") +
             " no Python functions: its stacks take too much memory";
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
