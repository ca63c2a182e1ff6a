#include "report/report_text.hpp"

#include "base/columns.hpp"
#include "base/text.hpp"
#include "report/names.hpp"
#include "report/text_parts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace pyinject::report {

namespace {

// "held by spin (83.1%)".
std::string holder_text(const Row& row) {
  if (row.holders.empty()) {
    return "";
  }
  const auto& first = row.holders.front();
  return fmt::format("held by {} ({})", short_name(first.name),
                     percent_text(first.waited, row.counts.native));
}

std::vector<std::string> header_of(View view) {
  switch (view) {
    case View::kFunctions:
    case View::kLines:
      return {"self%", "self", "python", "native", "kernel", "total%", "total", "function", "file"};
    case View::kImports:
      return {"self%", "self", "python", "native", "kernel", "total%", "total", "module", "file"};
    case View::kGil:
      return {"held%", "held", "waited%", "waited", "function", "file", ""};
    case View::kThreads:
      return {"share", "all", "python", "native", "kernel", "thread", ""};
    case View::kProcesses:
      return {"share", "all", "python", "native", "kernel", "process", ""};
    case View::kTasks:
      return {"share", "all", "python", "native", "kernel", "task", ""};
    default:
      return {};
  }
}

std::vector<std::string> cells_of(const Table& table, const Row& row, View view,
                                  const std::string& name) {
  const auto& counts = row.counts;
  const auto amount = [&](std::uint64_t weight) { return weight_text(table.unit, weight); };
  const auto percent = [&](std::uint64_t weight) { return percent_text(weight, table.weight); };
  if (view == View::kGil) {
    return {percent(counts.python),
            amount(counts.python),
            percent(counts.native),
            amount(counts.native),
            name,
            place_text(row.file, row.line),
            holder_text(row)};
  }
  std::vector<std::string> cells{percent(counts.self()), amount(counts.self()),
                                 amount(counts.python), amount(counts.native),
                                 amount(counts.kernel)};
  if (is_of_functions(view)) {
    cells.insert(cells.end(), {percent(counts.total), amount(counts.total)});
  }
  cells.insert(cells.end(), {name, place_text(row.file, row.line)});
  return cells;
}

std::size_t shown_rows(const Table& table, const TextOptions& options) {
  return options.most == 0 ? table.rows.size() : std::min(options.most, table.rows.size());
}

Row sum_of_rest(const Table& table, std::size_t shown) {
  Row rest;
  for (std::size_t i = shown; i < table.rows.size(); ++i) {
    const auto& counts = table.rows[i].counts;
    rest.counts.python += counts.python;
    rest.counts.native += counts.native;
    rest.counts.kernel += counts.kernel;
  }
  return rest;
}

std::string others_name(View view) {
  return std::string{view == View::kTasks     ? "(no task)"
                     : view == View::kImports ? "(no import)"
                                              : kNoFunctionName};
}

std::string table_text(const Table& table, const TextOptions& options) {
  const auto shown = shown_rows(table, options);
  auto header = header_of(options.view);
  const auto columns = header.size();
  std::vector<std::vector<std::string>> rows{std::move(header)};
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back(cells_of(table, table.rows[i], options.view, short_name(table.rows[i].name)));
  }
  if (shown < table.rows.size()) {
    auto cells = cells_of(table, sum_of_rest(table, shown), options.view,
                          fmt::format("({} more)", table.rows.size() - shown));
    if (is_of_functions(options.view)) {
      cells[5] = cells[6] = "";  // a sum of totals means nothing
    }
    rows.push_back(std::move(cells));
  }
  if (table.others) {
    rows.push_back(cells_of(table, *table.others, options.view, others_name(options.view)));
  }
  if (options.view == View::kGil &&
      std::ranges::all_of(table.rows, [](const Row& row) { return row.holders.empty(); })) {
    std::ranges::for_each(rows, [](auto& cells) { cells.pop_back(); });
  }
  std::vector<std::size_t> right(options.view == View::kGil ? 4 : columns - 2);
  for (std::size_t i = 0; i < right.size(); ++i) {
    right[i] = i;
  }
  auto text = title_text(table.event, table.unit, table.weight) +
              base::to_columns(rows, {.right_aligned = std::move(right), .width = options.width});
  if (table.undecided != 0) {
    text += fmt::format(
        "{} in native may be Python: the interpreter has no symbols; --engine bpf tells them "
        "apart\n",
        weight_text(table.unit, table.undecided));
  }
  return text;
}

nlohmann::json row_json(const Row& row, View view) {
  const auto& counts = row.counts;
  nlohmann::json json{{"name", row.name}};
  if (!row.file.empty()) {
    json["file"] = row.file;
  }
  if (row.line != 0) {
    json["line"] = row.line;
  }
  if (view == View::kGil) {
    json["held"] = counts.python;
    json["waited"] = counts.native;
    for (const auto& holder : row.holders) {
      nlohmann::json each{{"name", holder.name}, {"waited", holder.waited}};
      if (!holder.file.empty()) {
        each["file"] = holder.file;
      }
      json["holders"].push_back(std::move(each));
    }
    return json;
  }
  json["self"] = counts.self();
  json["python"] = counts.python;
  json["native"] = counts.native;
  json["kernel"] = counts.kernel;
  if (is_of_functions(view)) {
    json["total"] = counts.total;
  }
  return json;
}

}  // namespace

std::string to_text(const std::vector<Table>& tables, const TextOptions& options) {
  std::string text;
  for (const auto& table : tables) {
    text += text.empty() ? "" : "\n";
    text += table_text(table, options);
  }
  return text;
}

std::string to_json(const std::vector<Table>& tables, const TextOptions& options) {
  nlohmann::json json{
      {"version", 1}, {"view", name_of(options.view)}, {"tables", nlohmann::json::array()}};
  for (const auto& table : tables) {
    nlohmann::json each{{"event", table.event},
                        {"unit", unit_text(table.unit)},
                        {"all", table.weight},
                        {"rows", nlohmann::json::array()}};
    for (std::size_t i = 0; i < shown_rows(table, options); ++i) {
      each["rows"].push_back(row_json(table.rows[i], options.view));
    }
    if (table.undecided != 0) {
      each["undecided"] = table.undecided;
    }
    if (table.others) {
      each["others"] = row_json(*table.others, options.view);
    }
    json["tables"].push_back(std::move(each));
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_csv(const std::vector<Table>& tables, const TextOptions& options) {
  std::string text = options.view == View::kGil
                         ? "event,held,waited,name,file,line\n"
                         : "event,self,python,native,kernel,total,name,file,line\n";
  for (const auto& table : tables) {
    for (std::size_t i = 0; i < shown_rows(table, options); ++i) {
      const auto& row = table.rows[i];
      const auto& counts = row.counts;
      text += csv_text(table.event);
      text += options.view == View::kGil
                  ? fmt::format(",{},{}", counts.python, counts.native)
                  : fmt::format(",{},{},{},{},{}", counts.self(), counts.python, counts.native,
                                counts.kernel, counts.total);
      text += fmt::format(",{},{},{}\n", csv_text(row.name), csv_text(row.file),
                          row.line == 0 ? "" : std::to_string(row.line));
    }
  }
  return text;
}

}  // namespace pyinject::report
