#include "base/columns.hpp"
#include "base/text.hpp"
#include "report/json_rows.hpp"
#include "report/names.hpp"
#include "report/text_parts.hpp"
#include "report/views.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::report {

namespace {

constexpr std::size_t kDeepestIndented = 60;

std::string name_of(const TreeRow& row) {
  return row.folded != 0        ? fmt::format("({} more)", row.folded)
         : row.key.name.empty() ? std::string{kNoFunctionName}
                                : short_name(row.key.name);
}

std::string tree_text(const Tree& tree, const TextOptions& options) {
  std::vector<std::vector<std::string>> rows{{"total%", "total", "self", "function", "file"}};
  for (const auto& row : tree.rows) {
    const std::string indent(std::min(row.depth, kDeepestIndented), ' ');
    rows.push_back({percent_text(row.total, tree.weight), weight_text(tree.unit, row.total),
                    row.self == 0 ? "" : weight_text(tree.unit, row.self), indent + name_of(row),
                    place_text(row.key.file, 0)});
  }
  return title_text(tree.event, tree.unit, tree.weight) +
         base::to_columns(rows, {.right_aligned = {0, 1, 2}, .width = options.width});
}

}  // namespace

std::string to_text(const std::vector<Tree>& trees, const TextOptions& options) {
  std::string text;
  for (const auto& tree : trees) {
    text += text.empty() ? "" : "\n";
    text += tree_text(tree, options);
  }
  return text;
}

std::string to_json(const std::vector<Tree>& trees) {
  auto json = json_of_view(View::kTree);
  for (const auto& tree : trees) {
    nlohmann::json each{{"event", tree.event},
                        {"unit", unit_text(tree.unit)},
                        {"all", tree.weight},
                        {"rows", nlohmann::json::array()}};
    for (const auto& row : tree.rows) {
      auto one = json_of_key(row.key);
      one["depth"] = row.depth;
      one["self"] = row.self;
      one["total"] = row.total;
      if (row.folded != 0) {
        one["folded"] = row.folded;
      }
      each["rows"].push_back(std::move(one));
    }
    json["tables"].push_back(std::move(each));
  }
  return json_text(json);
}

std::string to_csv(const std::vector<Tree>& trees) {
  std::string text = "event,depth,self,total,folded,name,file\n";
  for (const auto& tree : trees) {
    for (const auto& row : tree.rows) {
      text += fmt::format("{},{},{},{},{},{},{}\n", csv_text(tree.event), row.depth, row.self,
                          row.total, row.folded, csv_text(row.key.name), csv_text(row.key.file));
    }
  }
  return text;
}

}  // namespace pyinject::report
