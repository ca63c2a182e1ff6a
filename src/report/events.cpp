#include "report/events.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace pyinject::report {

namespace {

std::optional<std::size_t> column_of(const EventTable& table,
                                     std::initializer_list<std::string_view> names) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (std::ranges::find(names, table.columns[i].event) != names.end()) {
      return i;
    }
  }
  return std::nullopt;
}

// The columns' numbers of the events.
std::vector<std::size_t> add_columns(const Profile& profile, EventTable& table) {
  std::vector<bool> has_samples(profile.events.size());
  for (const auto& sample : profile.samples) {
    has_samples[sample.event] = true;
  }
  std::vector<std::size_t> numbers(profile.events.size());
  for (const bool waits : {false, true}) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto& event = profile.events[i];
      if (has_samples[i] && (event.unit == Unit::kWaits) == waits) {
        numbers[i] = table.columns.size();
        table.columns.push_back({.event = event.name, .unit = event.unit});
      }
    }
  }
  return numbers;
}

bool comes_first(const EventRow& left, const EventRow& right, bool by_total) {
  for (std::size_t i = 0; i < left.amounts.size(); ++i) {
    const auto l = by_total ? left.amounts[i].total : left.amounts[i].self;
    const auto r = by_total ? right.amounts[i].total : right.amounts[i].self;
    if (l != r) {
      return l > r;
    }
  }
  return left.key < right.key;
}

}  // namespace

EventTable make_events(const Profile& profile, const ViewOptions& options) {
  EventTable table;
  const auto columns = add_columns(profile, table);
  const std::vector<EventAmounts> none(table.columns.size());
  Selection selection{profile, options};
  std::map<std::uint32_t, std::vector<EventAmounts>> rows;
  selection.visit([&](const Slice& slice, const StackFacts& facts) {
    const auto column = columns[slice.event];
    table.columns[column].all += slice.period;
    if (!facts.self && !table.others) {
      table.others = EventRow{.key = {}, .amounts = none};
    }
    auto& self =
        facts.self ? rows.try_emplace(*facts.self, none).first->second : table.others->amounts;
    self[column].samples += slice.samples;
    self[column].self += slice.period;
    self[column].total += facts.self ? 0 : slice.period;
    for (const auto row : facts.all) {
      rows.try_emplace(row, none).first->second[column].total += slice.period;
    }
  });
  for (auto& [row, amounts] : rows) {
    table.rows.push_back({.key = selection.key(row), .amounts = std::move(amounts)});
  }
  std::ranges::sort(table.rows, [&](const EventRow& left, const EventRow& right) {
    return comes_first(left, right, options.by_total);
  });
  return table;
}

std::optional<double> ipc_of(const EventTable& table, const EventRow& row) {
  const auto instructions = column_of(table, {"instructions"});
  const auto cycles = column_of(table, {"cycles", "cpu-cycles"});
  if (!instructions || !cycles || row.amounts[*cycles].self == 0) {
    return std::nullopt;
  }
  return static_cast<double>(row.amounts[*instructions].self) /
         static_cast<double>(row.amounts[*cycles].self);
}

}  // namespace pyinject::report
