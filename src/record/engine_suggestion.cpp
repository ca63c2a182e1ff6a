#include "record/engine_suggestion.hpp"

#include "procfs/stat.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "python/layout/version_policy.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::record {

namespace {

constexpr std::size_t kForksMuch = 2;  // children

std::string about_threads(const TrampolineBurden& target) {
  return fmt::format(
      "pid {} (Python {}) has {} Python threads: if it exits during the recording while daemon "
      "threads run, it can crash (cpython gh-143228); --engine bpf avoids this",
      target.pid.value(), python::to_string(target.version), target.python_threads);
}

std::string about_forks(const TrampolineBurden& target) {
  return fmt::format(
      "pid {} (Python {}) has forked {} running processes: those that it forks during the "
      "recording inherit the trampoline{}; --engine bpf changes no process",
      target.pid.value(), python::to_string(target.version), target.forked,
      python::activates_once(target.version)
          ? ", and later recordings cannot switch it on in new ones (forked_after_activation)"
          : "");
}

}  // namespace

std::string suggest_bpf(std::span<const TrampolineBurden> targets) {
  const auto threads = std::ranges::find_if(targets, [](const auto& target) {
    return target.python_threads > 1 && python::unmaps_used_arenas(target.version);
  });
  if (threads != targets.end()) {
    return about_threads(*threads);
  }
  const auto forks =
      std::ranges::find_if(targets, [](const auto& target) { return target.forked >= kForksMuch; });
  return forks == targets.end() ? "" : about_forks(*forks);
}

void count_forked(std::span<const python::Target> targets, std::vector<TrampolineBurden>& burdens) {
  std::vector<base::Pid> pids;
  for (const auto& target : targets) {
    pids.push_back(target.id.pid);
  }
  for (const auto child : targets::children_of(pids)) {
    const auto stat = procfs::read_stat(child);
    for (std::size_t i = 0; stat && i < burdens.size(); ++i) {
      // exec places the stack elsewhere.
      if (stat->parent == targets[i].id.pid && stat->stack_begin == targets[i].stack_begin) {
        ++burdens[i].forked;
      }
    }
  }
}

}  // namespace pyinject::record
