#include "base/columns.hpp"
#include "base/text.hpp"
#include "report/json_rows.hpp"
#include "report/names.hpp"
#include "report/text_parts.hpp"
#include "report/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace pyinject::report {

namespace {

std::string_view period_unit(const EventColumn& column) {
  return has_time(column.unit) ? "ns" : column.unit == Unit::kBytes ? "bytes" : "count";
}

std::string column_name(const EventColumn& column) {
  return column.unit == Unit::kWaits ? "waits" : base::printable(column.event);
}

// "1.23M"
std::string count_text(std::uint64_t count) {
  constexpr std::uint64_t kExact = 100'000;
  constexpr std::array<std::pair<double, char>, 4> kUnits{
      {{1e12, 'T'}, {1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}}};
  if (count < kExact) {
    return std::to_string(count);
  }
  const auto amount = static_cast<double>(count);
  const auto* const unit =
      std::ranges::find_if(kUnits, [&](const auto& each) { return amount >= each.first; });
  const auto value = amount / unit->first;
  return fmt::format("{:.{}f}{}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit->second);
}

std::string amount_text(const EventColumn& column, std::uint64_t amount) {
  return amount == 0                   ? ""
         : has_time(column.unit)       ? seconds_text(amount)
         : column.unit == Unit::kBytes ? base::bytes_text(amount)
                                       : count_text(amount);
}

std::size_t shown_events(const EventTable& events, const TextOptions& options) {
  return options.most == 0 ? events.rows.size() : std::min(options.most, events.rows.size());
}

bool has_ipc(const EventTable& events) {
  return std::ranges::any_of(events.rows,
                             [&](const EventRow& row) { return ipc_of(events, row).has_value(); });
}

EventRow sum_of_rest(const EventTable& events, std::size_t shown) {
  EventRow rest{.key = {}, .amounts = std::vector<EventAmounts>(events.columns.size())};
  for (auto i = shown; i < events.rows.size(); ++i) {
    for (std::size_t column = 0; column < events.columns.size(); ++column) {
      rest.amounts[column].self += events.rows[i].amounts[column].self;
    }
  }
  return rest;
}

std::string ipc_text(const EventTable& events, const EventRow& row) {
  const auto ipc = ipc_of(events, row);
  return ipc ? fmt::format("{:.2f}", *ipc) : "";
}

nlohmann::json json_of_row(const EventTable& events, const EventRow& row) {
  auto json = json_of_key(row.key);
  for (const auto& amounts : row.amounts) {
    json["samples"].push_back(amounts.samples);
    json["self"].push_back(amounts.self);
    json["total"].push_back(amounts.total);
  }
  if (const auto ipc = ipc_of(events, row)) {
    json["ipc"] = *ipc;
  }
  return json;
}

}  // namespace

std::string to_text(const EventTable& events, const TextOptions& options) {
  const bool ipc = has_ipc(events);
  std::vector<std::string> header;
  std::ranges::transform(events.columns, std::back_inserter(header), column_name);
  if (ipc) {
    header.emplace_back("IPC");
  }
  std::vector<std::size_t> right(header.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    right[i] = i;
  }
  header.insert(header.end(), {"function", "file"});
  std::vector<std::vector<std::string>> rows{std::move(header)};
  const auto add = [&](const EventRow& row, const std::string& name) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < events.columns.size(); ++i) {
      cells.push_back(amount_text(events.columns[i], row.amounts[i].self));
    }
    if (ipc) {
      cells.push_back(ipc_text(events, row));
    }
    cells.insert(cells.end(), {name, place_text(row.key.file, 0)});
    rows.push_back(std::move(cells));
  };
  const auto shown = shown_events(events, options);
  for (std::size_t i = 0; i < shown; ++i) {
    add(events.rows[i], short_name(events.rows[i].key.name));
  }
  if (shown < events.rows.size()) {
    add(sum_of_rest(events, shown), fmt::format("({} more)", events.rows.size() - shown));
  }
  if (events.others) {
    add(*events.others, std::string{kNoFunctionName});
  }
  return base::to_columns(rows, {.right_aligned = std::move(right), .width = options.width});
}

std::string to_json(const EventTable& events, const TextOptions& options) {
  auto json = json_of_view(View::kEvents);
  nlohmann::json table{{"events", nlohmann::json::array()}, {"rows", nlohmann::json::array()}};
  for (const auto& column : events.columns) {
    table["events"].push_back(
        {{"event", column.event}, {"unit", period_unit(column)}, {"all", column.all}});
  }
  for (std::size_t i = 0; i < shown_events(events, options); ++i) {
    table["rows"].push_back(json_of_row(events, events.rows[i]));
  }
  if (events.others) {
    table["others"] = json_of_row(events, *events.others);
  }
  json["tables"].push_back(std::move(table));
  return json_text(json);
}

std::string to_csv(const EventTable& events, const TextOptions& options) {
  std::string text = "name,file";
  for (const auto& column : events.columns) {
    text += fmt::format(",{}", csv_text(fmt::format("{} ({})", column.event, period_unit(column))));
  }
  text += ",ipc\n";
  for (std::size_t i = 0; i < shown_events(events, options); ++i) {
    const auto& row = events.rows[i];
    text += fmt::format("{},{}", csv_text(row.key.name), csv_text(row.key.file));
    for (const auto& amounts : row.amounts) {
      text += fmt::format(",{}", amounts.self);
    }
    text += fmt::format(",{}\n", ipc_text(events, row));
  }
  return text;
}

}  // namespace pyinject::report
