#include "base/columns.hpp"
#include "base/text.hpp"
#include "report/json_rows.hpp"
#include "report/text_parts.hpp"
#include "report/views.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pyinject::report {

namespace {

using Cells = std::vector<std::string>;

// The columns of the text: the first CPU event, and the waits.
struct Shown {
  std::optional<std::size_t> cpu{};
  std::optional<std::size_t> waits{};
};

Shown shown_columns(const Annotation& annotation) {
  Shown shown;
  for (std::size_t i = 0; i < annotation.columns.size(); ++i) {
    auto& column = annotation.columns[i].unit == Unit::kWaits ? shown.waits : shown.cpu;
    column = column.value_or(i);
  }
  return shown;
}

std::string count_cell(Unit unit, std::uint64_t count) {
  return count == 0 ? "" : weight_text(unit, count);
}

Cells cells_of(const Annotation& annotation, const Shown& shown,
               const std::vector<LineCounts>& counts) {
  Cells cells;
  if (shown.cpu) {
    const auto& line = counts[*shown.cpu];
    const auto unit = annotation.columns[*shown.cpu].unit;
    cells = {line.total == 0 ? "" : percent_text(line.total, annotation.columns[*shown.cpu].all),
             count_cell(unit, line.total), count_cell(unit, line.self)};
  }
  if (shown.waits) {
    cells.push_back(count_cell(Unit::kWaits, counts[*shown.waits].total));
  }
  return cells;
}

std::string title_of(const Annotation& annotation, const AnnotatedFunction& function) {
  auto text =
      fmt::format("{} {}:", base::printable(function.key.name), base::printable(function.key.file));
  for (std::size_t i = 0; i < annotation.columns.size(); ++i) {
    const auto& column = annotation.columns[i];
    const auto& counts = function.counts[i];
    if (counts.total != 0) {
      text += fmt::format("{} {} {} ({})", text.ends_with(':') ? "" : ",",
                          column.unit == Unit::kWaits ? "waits" : base::printable(column.event),
                          weight_text(column.unit, counts.total),
                          percent_text(counts.total, column.all));
    }
  }
  return text + "\n" + (function.source.note.empty() ? "" : function.source.note + "\n");
}

constexpr std::uint32_t kNear = 3;  // lines around one with samples have rows, too

bool is_near(const AnnotatedFunction& function, std::uint32_t line) {
  const auto next = function.lines.lower_bound(line > kNear ? line - kNear : 0);
  return line == function.first || (next != function.lines.end() && next->first <= line + kNear);
}

// The line before the next one with a row: a forged line may be far away.
std::uint32_t before_next(const AnnotatedFunction& function, std::uint32_t line) {
  const auto next = function.lines.upper_bound(line);
  return next == function.lines.end()     ? function.last
         : next->first > line + kNear + 1 ? next->first - kNear - 1
                                          : line;
}

std::string source_text(const AnnotatedFunction& function, std::uint32_t line) {
  constexpr std::string_view kTab = "    ";
  std::string text;
  if (line <= function.source.lines.size()) {
    for (const char c : function.source.lines[line - 1]) {
      text += c == '\t' ? kTab : std::string_view{&c, 1};
    }
  }
  return base::printable(text);
}

std::string function_text(const Annotation& annotation, const AnnotatedFunction& function,
                          const TextOptions& options) {
  const auto shown = shown_columns(annotation);
  Cells header;
  if (shown.cpu) {
    header = {"total%", "total", "self"};
  }
  if (shown.waits) {
    header.emplace_back("waits");
  }
  header.insert(header.end(), {"line", "source"});
  std::vector<std::size_t> right(header.size() - 1);
  for (std::size_t i = 0; i < right.size(); ++i) {
    right[i] = i;
  }
  std::vector<Cells> rows{std::move(header)};
  const std::vector<LineCounts> none(annotation.columns.size());
  bool skipped = false;
  const auto size = function.source.lines.size();
  for (std::uint64_t at = function.first; at <= function.last; ++at) {
    const auto line = static_cast<std::uint32_t>(at);
    const auto found = function.lines.find(line);
    if (found == function.lines.end() && (line > size || !is_near(function, line))) {
      skipped = true;
      at = before_next(function, line);
      continue;
    }
    if (skipped) {
      rows.emplace_back(right.size() + 1);
      rows.back()[right.size() - 1] = "...";
    }
    skipped = false;
    auto cells = cells_of(annotation, shown, found == function.lines.end() ? none : found->second);
    cells.insert(cells.end(), {std::to_string(line), source_text(function, line)});
    rows.push_back(std::move(cells));
  }
  return title_of(annotation, function) +
         base::to_columns(rows, {.right_aligned = std::move(right), .width = options.width});
}

nlohmann::json json_of_counts(const std::vector<LineCounts>& counts) {
  nlohmann::json json;
  for (const auto& each : counts) {
    json["self"].push_back(each.self);
    json["total"].push_back(each.total);
  }
  return json;
}

}  // namespace

std::string to_text(const Annotation& annotation, const TextOptions& options) {
  std::string text;
  for (const auto& function : annotation.functions) {
    text += text.empty() ? "" : "\n";
    text += function_text(annotation, function, options);
  }
  return text;
}

std::string to_json(const Annotation& annotation) {
  auto json = json_of_view(View::kAnnotate);
  nlohmann::json events = nlohmann::json::array();
  for (const auto& column : annotation.columns) {
    events.push_back(
        {{"event", column.event}, {"unit", unit_text(column.unit)}, {"all", column.all}});
  }
  for (const auto& function : annotation.functions) {
    auto one = json_of_key(function.key);
    one.update(json_of_counts(function.counts));
    one["events"] = events;
    if (!function.source.note.empty()) {
      one["note"] = function.source.note;
    }
    one["lines"] = nlohmann::json::array();
    for (const auto& [line, counts] : function.lines) {
      auto each = json_of_counts(counts);
      each["line"] = line;
      if (line <= function.source.lines.size()) {
        each["source"] = function.source.lines[line - 1];
      }
      one["lines"].push_back(std::move(each));
    }
    json["tables"].push_back(std::move(one));
  }
  return json_text(json);
}

std::string to_csv(const Annotation& annotation) {
  std::string text = "event,self,total,name,file,line,source\n";
  for (const auto& function : annotation.functions) {
    for (const auto& [line, counts] : function.lines) {
      for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i].total != 0) {
          text += fmt::format(
              "{},{},{},{},{},{},{}\n", csv_text(annotation.columns[i].event), counts[i].self,
              counts[i].total, csv_text(function.key.name), csv_text(function.key.file), line,
              line <= function.source.lines.size() ? csv_text(function.source.lines[line - 1])
                                                   : "");
        }
      }
    }
  }
  return text;
}

}  // namespace pyinject::report
