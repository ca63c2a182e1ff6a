#include "report/difference.hpp"

#include "base/columns.hpp"
#include "report/moved_functions.hpp"
#include "report/names.hpp"
#include "report/text_parts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace pyinject::report {

namespace {

bool compares_shares(Unit unit) { return !weighs_time(unit) && unit != Unit::kBytes; }

double percent(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

// Points of percent, or the unit of weights.
double change(const Difference& of, std::uint64_t before, std::uint64_t now) {
  return compares_shares(of.unit) ? percent(now, of.now) - percent(before, of.before)
                                  : static_cast<double>(now) - static_cast<double>(before);
}

FunctionKey key_of(const Row& row) {
  return {0, row.name, fmt::format("{}:{}", row.file, row.line)};
}

std::vector<FunctionKey> keys_of(const Table& table) {
  std::vector<FunctionKey> keys(table.rows.size());
  std::ranges::transform(table.rows, keys.begin(), [](const Row& row) {
    return FunctionKey{0, row.name, row.file};
  });
  return keys;
}

Difference compare(const Table& before, const Table& now, bool by_total) {
  Difference difference{
      .event = now.event, .unit = now.unit, .before = before.weight, .now = now.weight, .rows = {}};
  auto& rows = difference.rows;
  std::map<FunctionKey, std::size_t> places;
  for (const auto& row : now.rows) {
    places.emplace(key_of(row), rows.size());
    rows.push_back(
        {.name = row.name, .file = row.file, .line = row.line, .before = {}, .now = row.counts});
  }
  const auto moved = moved_functions(keys_of(before), keys_of(now));
  for (auto row : before.rows) {
    if (const auto found = moved.find({0, row.name, row.file}); found != moved.end()) {
      row.file = std::get<2>(found->second);
    }
    const auto [place, fresh] = places.try_emplace(key_of(row), rows.size());
    if (fresh) {
      rows.push_back({.name = row.name, .file = row.file, .line = row.line});
    }
    rows[place->second].before = row.counts;
  }
  if (before.others || now.others) {
    rows.push_back({.name = {},
                    .before = before.others.value_or(Row{}).counts,
                    .now = now.others.value_or(Row{}).counts});
  }
  const auto size = [&](const ChangedRow& row) {
    const auto self = std::abs(change(difference, row.before.self(), row.now.self()));
    const auto total = std::abs(change(difference, row.before.total, row.now.total));
    return by_total ? std::pair{total, self} : std::pair{self, total};
  };
  std::ranges::stable_sort(rows, std::ranges::greater{}, size);
  return difference;
}

std::string amount_text(const Difference& of, std::uint64_t weight, std::uint64_t all) {
  return compares_shares(of.unit) ? percent_text(weight, all) : weight_text(of.unit, weight);
}

std::string change_text(const Difference& of, std::uint64_t before, std::uint64_t now) {
  if (compares_shares(of.unit)) {
    return fmt::format("{:+.1f}", change(of, before, now));
  }
  return fmt::format("{}{}", now >= before ? '+' : '-',
                     weight_text(of.unit, now >= before ? now - before : before - now));
}

std::string text_of(const Difference& of, const TextOptions& options) {
  std::vector<std::vector<std::string>> rows{
      {"self", "before", "now", "total", "before", "now", "function", "file"}};
  const auto shown = options.most == 0 ? of.rows.size() : std::min(options.most, of.rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& row = of.rows[i];
    const auto was = row.before.self();
    const auto is = row.now.self();
    rows.push_back({change_text(of, was, is), amount_text(of, was, of.before),
                    amount_text(of, is, of.now), change_text(of, row.before.total, row.now.total),
                    amount_text(of, row.before.total, of.before),
                    amount_text(of, row.now.total, of.now),
                    row.name.empty() ? std::string{kNoFunctionName} : short_name(row.name),
                    place_text(row.file, row.line)});
  }
  auto text = fmt::format(
      "{}: {} before, {} now\n", of.event,
      compares_shares(of.unit) ? fmt::format("{} samples", of.before)
                               : weight_text(of.unit, of.before),
      compares_shares(of.unit) ? fmt::format("{} samples", of.now) : weight_text(of.unit, of.now));
  text += base::to_columns(rows, {.right_aligned = {0, 1, 2, 3, 4, 5}, .width = options.width});
  if (shown < of.rows.size()) {
    text += fmt::format("({} more)\n", of.rows.size() - shown);
  }
  return text;
}

}  // namespace

std::vector<Difference> compare(const std::vector<Table>& before, const std::vector<Table>& now,
                                bool by_total) {
  std::vector<Difference> differences;
  for (const auto& table : now) {
    const auto found = std::ranges::find_if(before, [&](const Table& other) {
      return other.event == table.event && other.unit == table.unit;
    });
    if (found != before.end()) {
      differences.push_back(compare(*found, table, by_total));
    }
  }
  return differences;
}

std::string to_text(const std::vector<Difference>& differences, const TextOptions& options) {
  std::string text;
  for (const auto& difference : differences) {
    text += text.empty() ? "" : "\n";
    text += text_of(difference, options);
  }
  return text;
}

std::string to_json(const std::vector<Difference>& differences, const TextOptions& options) {
  nlohmann::json json{
      {"version", 1}, {"view", name_of(options.view)}, {"differences", nlohmann::json::array()}};
  for (const auto& of : differences) {
    nlohmann::json each{{"event", of.event},
                        {"unit", unit_text(of.unit)},
                        {"all_before", of.before},
                        {"all", of.now},
                        {"rows", nlohmann::json::array()}};
    for (std::size_t i = 0; i < of.rows.size() && (options.most == 0 || i < options.most); ++i) {
      const auto& row = of.rows[i];
      nlohmann::json one{{"name", row.name},
                         {"self_before", row.before.self()},
                         {"self", row.now.self()},
                         {"total_before", row.before.total},
                         {"total", row.now.total}};
      if (!row.file.empty()) {
        one["file"] = row.file;
      }
      if (row.line != 0) {
        one["line"] = row.line;
      }
      each["rows"].push_back(std::move(one));
    }
    json["differences"].push_back(std::move(each));
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_csv(const std::vector<Difference>& differences, const TextOptions& options) {
  std::string text = "event,all_before,all,self_before,self,total_before,total,name,file,line\n";
  for (const auto& of : differences) {
    for (std::size_t i = 0; i < of.rows.size() && (options.most == 0 || i < options.most); ++i) {
      const auto& row = of.rows[i];
      text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_text(of.event), of.before, of.now,
                          row.before.self(), row.now.self(), row.before.total, row.now.total,
                          csv_text(row.name), csv_text(row.file),
                          row.line == 0 ? "" : std::to_string(row.line));
    }
  }
  return text;
}

}  // namespace pyinject::report
