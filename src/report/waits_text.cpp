#include "base/columns.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "report/json_rows.hpp"
#include "report/names.hpp"
#include "report/text_parts.hpp"
#include "report/views.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::report {

namespace {

std::size_t shown_waits(const WaitTable& waits, const TextOptions& options) {
  return options.most == 0 ? waits.rows.size() : std::min(options.most, waits.rows.size());
}

}  // namespace

std::string to_text(const WaitTable& waits, const TextOptions& options) {
  std::vector<std::vector<std::string>> rows{
      {"share", "waited", "count", "for", "in the kernel", "function", "file"}};
  const auto add = [&](const WaitRow& row, std::string name) {
    rows.push_back({percent_text(row.waited, waits.waited), seconds_text(row.waited),
                    std::to_string(row.count), row.what, base::printable(row.reason),
                    std::move(name), place_text(row.key.file, row.key.line)});
  };
  const auto shown = shown_waits(waits, options);
  WaitRow rest;
  for (std::size_t i = 0; i < waits.rows.size(); ++i) {
    const auto& row = waits.rows[i];
    if (i < shown) {
      add(row, row.key.name.empty() ? std::string{kNoFunctionName} : short_name(row.key.name));
    } else {
      rest.waited += row.waited;
      rest.count += row.count;
    }
  }
  if (shown < waits.rows.size()) {
    add(rest, fmt::format("({} more)", waits.rows.size() - shown));
  }
  return fmt::format("waits: {} in {}\n", seconds_text(waits.waited),
                     base::counted(waits.count, "wait")) +
         base::to_columns(rows, {.right_aligned = {0, 1, 2}, .width = options.width});
}

std::string to_json(const WaitTable& waits, const TextOptions& options) {
  auto json = json_of_view(View::kWaits);
  nlohmann::json table{{"unit", "ns"},
                       {"all", waits.waited},
                       {"count", waits.count},
                       {"rows", nlohmann::json::array()}};
  for (std::size_t i = 0; i < shown_waits(waits, options); ++i) {
    const auto& row = waits.rows[i];
    auto one = json_of_key(row.key);
    one["for"] = row.what;
    one["reason"] = row.reason;
    one["count"] = row.count;
    one["waited"] = row.waited;
    table["rows"].push_back(std::move(one));
  }
  json["tables"].push_back(std::move(table));
  return json_text(json);
}

std::string to_csv(const WaitTable& waits, const TextOptions& options) {
  std::string text = "waited,count,for,reason,name,file,line\n";
  for (std::size_t i = 0; i < shown_waits(waits, options); ++i) {
    const auto& row = waits.rows[i];
    text += fmt::format("{},{},{},{},{},{},{}\n", row.waited, row.count, row.what,
                        csv_text(row.reason), csv_text(row.key.name), csv_text(row.key.file),
                        row.key.line == 0 ? "" : std::to_string(row.key.line));
  }
  return text;
}

}  // namespace pyinject::report
