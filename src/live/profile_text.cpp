// A live profile without a display: as text and as JSON.
#include "base/text.hpp"
#include "bpf/stack_kind.hpp"
#include "live/live_view.hpp"
#include "live/row_text.hpp"
#include "live/view_names.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace pyinject::live {

namespace {

using Json = nlohmann::ordered_json;

std::string place_of(View view, const Row& row) {
  const auto place = base::printable(row.place);
  return view == View::kTasks || row.line == 0 || place.empty()
             ? place
             : fmt::format("{}:{}", place, row.line);
}

}  // namespace

std::string uses_text(const Profile& profile) {
  const auto uses = profile.uses();
  auto text = fmt::format("CPU {:.1f}%:", 100 * profile.share());
  for (std::size_t use = 0; use < sample::kCpuUses; ++use) {
    const bool always = static_cast<Use>(use) != Use::kUnknown;
    if (always || uses.at(use) > 0) {
      text += fmt::format(" {} {:.1f}% ", sample::kUseFacts.at(use).name, 100 * uses.at(use));
    }
  }
  text.pop_back();
  return text;
}

namespace {

perfdata::StackCounts stack_counts(const Profile& profile, const SessionFacts& facts) {
  auto counts = profile.kinds();
  // Time in which a stack could not be read from outside counts for the next stack of its thread.
  counts.counts.at(static_cast<std::size_t>(perfdata::StackKind::kUnread)) +=
      facts.bpf ? facts.lost : 0;
  return counts;
}

}  // namespace

std::string incompleteness(const Profile& profile, const SessionFacts& facts) {
  return perfdata::incompleteness(stack_counts(profile, facts), false);
}

std::string to_text(const Profile& profile, const TableOptions& options) {
  const auto table = profile.table(options);
  Columns columns;
  columns.gil = profile.has_gil();
  auto text = fmt::format("{} {}\n", heading_of({}, columns), name_of(options.view).heading);
  for (const auto& row : table.rows) {
    text += fmt::format("{} {}{}{}\n", numbers_of(row, columns, false), base::printable(row.name),
                        row.place.empty() ? "" : "  ", place_of(options.view, row));
  }
  if (table.left_out > 0) {
    text += fmt::format("and {} more\n", table.left_out);
  }
  return text;
}

namespace {

Json uses_json(const Uses& uses) {
  auto json = Json::object();
  for (std::size_t use = 0; use < sample::kCpuUses; ++use) {
    json[std::string{sample::kUseFacts.at(use).name}] = uses.at(use);
  }
  return json;
}

Json gil_json(const Profile& profile, double share) {
  return profile.has_gil() ? Json(share) : Json(nullptr);
}

Json waits_json(const Waits& waits) {
  auto json = Json::object();
  for (const auto& facts : sample::kUseFacts) {
    if (const auto wait = waits.at(static_cast<std::size_t>(facts.use)); wait > 0) {
      json[std::string{facts.name}] = wait;
    }
  }
  return json;
}

}  // namespace

std::string to_json(const Profile& profile, const SessionFacts& facts) {
  const auto kinds = stack_counts(profile, facts);
  auto stacks = Json::object();
  for (const auto kind : bpf::kKindsOfStacks) {
    stacks[std::string{perfdata::name(kind)}] = kinds.of(kind);
  }
  Json json{{"version", 2},
            {"processes_sampled", facts.processes},
            {"frequency", facts.frequency},
            {"source", facts.bpf ? "bpf" : "reading"},
            {"seconds", seconds_of(profile.length())},
            {"samples", profile.samples()},
            {"lost", facts.lost},
            {"stacks", std::move(stacks)},
            {"cpu", profile.share()},
            {"gil", gil_json(profile, profile.gil_share())}};
  if (facts.bpf) {
    json["uses"] = uses_json(profile.uses());
  }
  for (const auto& each : kViews) {
    if (each.view == View::kC && !facts.bpf) {
      continue;  // such stacks do not tell
    }
    auto rows = Json::array();
    for (const auto& row : profile.table({.view = each.view}).rows) {
      Json one{{"name", base::printable(row.name)}};
      if (each.view == View::kTasks) {
        one["kind"] = row.greenlet ? "greenlet" : "task";
        one["pid"] = row.pid;
      } else if (!row.place.empty()) {
        one["file"] = base::printable(row.place);
      }
      if (row.line != 0) {
        one["line"] = row.line;
      }
      one["self"] = row.self;
      one["total"] = row.total;
      one["self_seconds"] = seconds_of(row.self_time);
      one["total_seconds"] = seconds_of(row.total_time);
      one["gil"] = gil_json(profile, row.gil);
      if (facts.bpf) {
        one["uses"] = uses_json(row.uses);
      }
      one["wait"] = row.wait;
      one["wait_seconds"] = seconds_of(row.wait_time);
      one["waits"] = waits_json(row.waits);
      rows.push_back(std::move(one));
    }
    json[std::string{each.name}] = std::move(rows);
  }
  return json.dump(2) + "\n";
}

}  // namespace pyinject::live
