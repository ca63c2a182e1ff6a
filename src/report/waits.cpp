#include "report/waits.hpp"

#include "procfs/kernel_work.hpp"
#include "sample/use.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace pyinject::report {

namespace {

struct WaitKey {
  std::string what;
  std::string reason;
  RowKey row;
  auto operator<=>(const WaitKey&) const = default;
};

struct Waited {
  std::uint64_t count = 0;
  std::uint64_t nanoseconds = 0;
};

// Every thread that stops running is in these, whatever it waits for.
bool is_schedulers(std::string_view function) {
  return function.find("schedule") != std::string_view::npos || function.starts_with("perf_") ||
         function.starts_with("__perf_") || function.starts_with("bpf_");
}

// Innermost first.
std::vector<std::string_view> kernel_functions(const Profile& profile, const StackFacts& facts) {
  std::vector<std::string_view> names;
  for (const auto frame : facts.frames) {
    const auto& function = function_of(profile, frame);
    if (function.kind == Kind::kKernel && !function.name.empty()) {
      names.emplace_back(function.name);
    }
  }
  return names;
}

std::string what_of(const StackFacts& facts, const std::vector<std::string_view>& functions) {
  if (facts.marks.wait == "preempted") {
    return "CPU";
  }
  if (facts.marks.gil == "waiting") {
    return "GIL";
  }
  return std::string{sample::facts(procfs::kernel_work(functions).use).wait};
}

}  // namespace

std::string awaited_by(const Profile& profile, const StackFacts& facts) {
  return what_of(facts, kernel_functions(profile, facts));
}

WaitTable make_waits(const Profile& profile, const ViewOptions& options) {
  Selection selection{profile, options, true};
  std::map<WaitKey, Waited> rows;
  WaitTable table;
  selection.visit([&](const Slice& slice, const StackFacts& facts) {
    if (profile.events[slice.event].unit != Unit::kWaits) {
      return;
    }
    const auto functions = kernel_functions(profile, facts);
    const auto reason = std::ranges::find_if_not(functions, is_schedulers);
    auto& row = rows[{.what = what_of(facts, functions),
                      .reason = reason == functions.end() ? "" : std::string{*reason},
                      .row = facts.self ? selection.key(*facts.self) : RowKey{}}];
    row.count += slice.samples;
    row.nanoseconds += slice.weight;
    table.count += slice.samples;
    table.waited += slice.weight;
  });
  for (const auto& [key, waited] : rows) {
    table.rows.push_back({.what = key.what,
                          .reason = key.reason,
                          .key = key.row,
                          .count = waited.count,
                          .waited = waited.nanoseconds});
  }
  std::ranges::stable_sort(table.rows, std::ranges::greater{}, &WaitRow::waited);
  return table;
}

}  // namespace pyinject::report
