#include "pyinject/targets/stats.hpp"

#include "base/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace pyinject::targets {

namespace {

std::size_t index_of(python::Reason reason) {
  const auto& all = python::all_reasons();
  return static_cast<std::size_t>(std::ranges::find(all, reason) - all.begin());
}

}  // namespace

void Stats::count_refusal(python::Reason reason) {
  ++reasons_.at(index_of(reason));
  ++counter(reason);
}

void Stats::count_deactivation_failure(python::Reason reason) {
  ++reasons_.at(index_of(reason));
  ++deactivate_failed;
}

std::uint64_t Stats::of(python::Reason reason) const { return reasons_.at(index_of(reason)); }

Stats::Counter& Stats::counter(python::Reason reason) {
  switch (reason) {
    case python::Reason::kNotPython:
      return skipped_not_python;
    case python::Reason::kPythonTooOld:
      return skipped_too_old;
    case python::Reason::kNoPerfTrampoline:
      return skipped_no_tramp;
    case python::Reason::kNoLibpythonSymbols:
      return skipped_no_symbols;
    default:
      return activate_failed;
  }
}

Stats::Counts Stats::counters() const {
  return {{
      {"Activated", activated},
      {"Deactivated", deactivated},
      {"SkippedNotPython", skipped_not_python},
      {"SkippedTooOld", skipped_too_old},
      {"SkippedNoTramp", skipped_no_tramp},
      {"SkippedNoSymbols", skipped_no_symbols},
      {"ActivateFailed", activate_failed},
      {"DeactivateFailed", deactivate_failed},
  }};
}

std::string Stats::summary() const {
  const std::uint64_t recorded = activated;
  const std::uint64_t skipped = skipped_not_python + skipped_too_old + skipped_no_tramp +
                                skipped_no_symbols + activate_failed;
  std::string text = base::counted(recorded, "process", "processes") + " recorded";
  if (skipped != 0) {
    text += fmt::format(", {} skipped", skipped);
  }
  if (deactivate_failed != 0) {
    text += fmt::format(", {} not switched off", deactivate_failed.load());
  }
  std::vector<std::string> reasons;
  for (const auto reason : python::all_reasons()) {
    if (of(reason) != 0) {
      reasons.push_back(fmt::format("{} {}", of(reason), python::name(reason)));
    }
  }
  return reasons.empty() ? text : text + fmt::format(" ({})", fmt::join(reasons, ", "));
}

}  // namespace pyinject::targets
