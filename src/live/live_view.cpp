#include "live/live_view.hpp"

#include "base/columns.hpp"
#include "base/text.hpp"
#include "bpf/stack_kind.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace pyinject::live {

namespace {

using Json = nlohmann::ordered_json;

struct ViewName {
  View view;
  char key;
  std::string_view name;
  std::string_view heading;
};
constexpr auto kViews = std::to_array<ViewName>({
    {View::kFunctions, 'f', "functions", "FUNCTION"},
    {View::kLines, 'l', "lines", "LINE"},
    {View::kThreads, 't', "threads", "THREAD"},
    {View::kTasks, 'a', "tasks", "TASK"},
    {View::kProcesses, 'P', "processes", "PROCESS"},
});

struct OrderName {
  Order order;
  std::string_view heading;
  std::size_t width;
};
// The keys 1 to 6 choose the column by which rows are sorted.
constexpr auto kOrders = std::to_array<OrderName>({
    {Order::kSelf, "SELF%", 6},
    {Order::kTotal, "TOTAL%", 7},
    {Order::kSelfTime, "SELF s", 7},
    {Order::kTotalTime, "TOTAL s", 8},
    {Order::kGil, "GIL%", 5},
    {Order::kWait, "WAIT%", 6},
});

constexpr std::size_t kTrend = 10;  // intervals that are drawn
constexpr std::size_t kLeastStack = 5;
constexpr std::size_t kLeastName = 24;  // columns for names: narrow terminals have fewer others

// The columns that fit.
struct Columns {
  bool states = true;  // GIL% and WAIT%
  bool times = true;
  bool trend = true;
};

constexpr Columns columns_for(std::size_t width) {
  constexpr std::size_t kShares = 15;
  constexpr std::size_t kStates = 13;
  constexpr std::size_t kTimes = 17;
  const auto needed = kShares + kLeastName;
  return {.states = width >= needed + kStates,
          .times = width >= needed + kStates + kTimes,
          .trend = width >= needed + kStates + kTimes + kTrend + 1};
}

const ViewName& name_of(View view) { return *std::ranges::find(kViews, view, &ViewName::view); }

double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>{time}.count();
}

// One column for each interval: eight heights up to the highest of all rows.
std::string trend(const std::vector<double>& history, bool utf8) {
  static constexpr std::array<std::string_view, 9> kBlocks{" ", "▁", "▂", "▃", "▄",
                                                           "▅", "▆", "▇", "█"};
  static constexpr std::array<std::string_view, 9> kAscii{" ", ".", ".", ":", "-",
                                                          "=", "+", "*", "#"};
  std::string text;
  const auto shown = std::min(history.size(), kTrend);
  text.append(kTrend - shown, ' ');
  for (auto value = history.end() - static_cast<std::ptrdiff_t>(shown); value != history.end();
       ++value) {
    const auto height = std::clamp(static_cast<int>(std::ceil(*value * 8)), 0, 8);
    text += (utf8 ? kBlocks : kAscii).at(static_cast<std::size_t>(height));
  }
  return text;
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80; }

// At most COLUMNS characters.
std::string cut(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && ++seen > columns) {
      break;
    }
  }
  return std::string{text.substr(0, end)};
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

// NAME, and as much of the end of PLACE as fits.
std::string name_and_place(const std::string& name, const std::string& place, std::size_t columns) {
  constexpr std::string_view kMore = "...";
  const auto used = columns_of(name) + 2;
  if (place.empty() || used + columns_of(place) <= columns) {
    return fmt::format("{}{}{}", name, place.empty() ? "" : "  ", place);
  }
  if (used + kMore.size() >= columns) {
    return cut(name, columns);
  }
  auto begin = place.size();
  for (auto left = columns - used - kMore.size(); left > 0; --left) {
    do {
      --begin;
    } while (begin > 0 && !begins_character(place[begin]));
  }
  return fmt::format("{}  {}{}", name, kMore, place.substr(begin));
}

std::string place_of(View view, const Row& row) {
  if (row.place.empty()) {
    return {};
  }
  const auto place = base::printable(row.place);
  return view == View::kTasks || row.line == 0 ? place : fmt::format("{}:{}", place, row.line);
}

std::string text_of(const Place& place, std::size_t columns) {
  const auto file = place.file.empty()
                        ? std::string{}
                        : fmt::format("{}:{}", base::printable(place.file), place.line);
  return name_and_place(base::printable(place.name), file,
                        columns - std::min<std::size_t>(columns, 2));
}

std::string numbers_of(const Row& row, Columns columns = {}) {
  auto text = fmt::format("{:6.1f} {:7.1f} ", 100 * row.self, 100 * row.total);
  if (columns.times) {
    text += fmt::format("{:7.1f} {:8.1f} ", seconds_of(row.self_time), seconds_of(row.total_time));
  }
  if (columns.states) {
    text += fmt::format("{:5.1f} {:6.1f} ", 100 * row.gil, 100 * row.wait);
  }
  return text;
}

// A star marks the column by which the rows are sorted.
std::string heading_of(std::optional<Order> order, Columns columns = {}) {
  std::string text;
  for (const auto& each : kOrders) {
    const bool time = each.order == Order::kSelfTime || each.order == Order::kTotalTime;
    const bool state = each.order == Order::kGil || each.order == Order::kWait;
    const bool shown = time ? columns.times : !state || columns.states;
    if (shown) {
      text += fmt::format(
          "{:>{}} ", std::string{each.order == order ? "*" : ""}.append(each.heading), each.width);
    }
  }
  return text;
}

}  // namespace

bool LiveView::press(Key key) {
  if (typing_) {
    if (key == Key::kBackspace && !filter_.empty()) {
      while (!begins_character(filter_.back())) {
        filter_.pop_back();
      }
      filter_.pop_back();
    } else if (key == Key::kEscape) {
      filter_.clear();
    }
    typing_ = key == Key::kBackspace;
    return true;
  }
  const auto page = static_cast<std::ptrdiff_t>(page_);
  switch (key) {
    case Key::kUp:
      move(-1);
      break;
    case Key::kDown:
      move(1);
      break;
    case Key::kPageUp:
      move(-page);
      break;
    case Key::kPageDown:
      move(page);
      break;
    case Key::kHome:
      move(-static_cast<std::ptrdiff_t>(count_));
      break;
    case Key::kEnd:
      move(static_cast<std::ptrdiff_t>(count_));
      break;
    case Key::kEnter:
      stack_ = !stack_;
      break;
    case Key::kEscape:
      stack_ = false;
      help_ = false;
      filter_.clear();
      break;
    case Key::kBackspace:
      break;
  }
  return true;
}

bool LiveView::press(char character) {
  if (typing_) {
    filter_ += character;
    return true;
  }
  for (const auto& each : kViews) {
    if (each.key == character) {
      choose(each.view);
    }
  }
  if (character >= '1' && character < '1' + static_cast<int>(kOrders.size())) {
    order_ = kOrders.at(static_cast<std::size_t>(character - '1')).order;
    selected_ = first_ = 0;
  }
  switch (character) {
    case 'q':
      return false;
    case 'p':
    case ' ':
      paused_ = !paused_;
      break;
    case 'r':
      reset_ = true;
      selected_ = first_ = 0;
      break;
    case '/':
      typing_ = true;
      filter_.clear();
      selected_ = first_ = 0;
      break;
    case 'h':
    case '?':
      help_ = !help_;
      break;
    case 'k':
      move(-1);
      break;
    case 'j':
      move(1);
      break;
    default:
      break;
  }
  return true;
}

void LiveView::choose(View view) {
  view_ = view;
  filter_.clear();
  selected_ = first_ = 0;
}

void LiveView::move(std::ptrdiff_t by) {
  const auto most = count_ == 0 ? 0 : count_ - 1;
  const auto to = static_cast<std::ptrdiff_t>(selected_) + by;
  selected_ = std::min(to < 0 ? 0 : static_cast<std::size_t>(to), most);
}

void LiveView::add_table(const Profile& profile, Size size, std::vector<ScreenLine>& lines) {
  const auto table = profile.table({.view = view_, .order = order_, .filter = filter_});
  const auto columns = columns_for(size.columns);
  count_ = table.rows.size();
  page_ = size.rows;
  selected_ = std::min(selected_, count_ == 0 ? 0 : count_ - 1);
  first_ = std::clamp(first_, selected_ + 1 > page_ ? selected_ + 1 - page_ : 0, selected_);
  selected_id_ = count_ == 0 ? 0 : table.rows[selected_].id;
  for (std::size_t i = 0; i < page_; ++i) {
    const auto index = first_ + i;
    if (index >= count_) {
      lines.push_back({});
      continue;
    }
    const auto& row = table.rows[index];
    auto text = numbers_of(row, columns);
    if (columns.trend) {
      text += trend(row.history, utf8_) + " ";
    }
    const auto used = columns_of(text);
    text += name_and_place(base::printable(row.name), place_of(view_, row),
                           size.columns > used ? size.columns - used : 0);
    lines.push_back({.text = cut(text, size.columns),
                     .style = index == selected_ ? Style::kSelected : Style::kPlain});
  }
}

void LiveView::add_stack(const Profile& profile, Size size, std::vector<ScreenLine>& lines) const {
  const auto stack = profile.stack_of(view_, selected_id_);
  lines.push_back({.text = cut("its most frequent stack, innermost function first", size.columns),
                   .style = Style::kHeading});
  for (std::size_t i = 0; i + 1 < size.rows; ++i) {
    const bool last = i + 2 == size.rows && i + 1 < stack.size();
    lines.push_back({.text = i >= stack.size() ? std::string{}
                             : last            ? fmt::format("  ... {} more", stack.size() - i)
                                               : "  " + text_of(stack[i], size.columns)});
  }
}

void LiveView::add_help(std::vector<ScreenLine>& lines) {
  for (const auto* const text :
       {"f functions   l lines   t threads   a tasks, greenlets   P processes",
        "1 to 6        sort by that column", "up down j k   select a row",
        "enter         show the most frequent stack of the selected row",
        "/             show only rows that contain the text; escape: all",
        "p, space      pause the display (sampling goes on)", "r             start again from zero",
        "h ?           this help", "q             quit", "",
        "SELF%, TOTAL%: share of one CPU in the latest ten seconds, without and with",
        "the functions that it calls. SELF s, TOTAL s: since the start, or since r.",
        "python: what the interpreter does for byte code; c: C functions that Python called.",
        "GIL%: the part of SELF% in which the thread held the GIL.",
        "WAIT%: threads off the CPU in this function, without those that it calls:",
        "100 % is one thread that waits all the time."}) {
    lines.push_back({.text = text});
  }
}

std::vector<ScreenLine> LiveView::lines(const Profile& profile, const SessionFacts& facts,
                                        Size size) {
  std::vector<ScreenLine> lines;
  lines.push_back(
      {.text = fmt::format("perf-pyinject top  {}  CPU {:.0f}%  GIL {:.0f}%  {}{:.0f} s  {}  {}",
                           base::counted(facts.processes, "process", "processes"),
                           100 * profile.share(), 100 * profile.gil_share(),
                           facts.lost == 0 ? "" : fmt::format("{} lost  ", facts.lost),
                           seconds_of(profile.length()), base::counted(profile.samples(), "sample"),
                           facts.bpf ? fmt::format("{} Hz", facts.frequency) : "no BPF"),
       .style = Style::kTitle});
  std::string views;
  for (const auto& each : kViews) {
    const bool chosen = each.view == view_;
    views += fmt::format("{}{} {}{} ", chosen ? '[' : ' ', each.key, each.name, chosen ? ']' : ' ');
  }
  lines.push_back({.text = views});
  constexpr std::size_t kEnough = 16;  // smaller screens need their rows for the table
  if (facts.bpf && size.rows >= kEnough) {
    lines.push_back({.text = uses_text(profile)});
  }
  if (auto lacks = incompleteness(profile, facts); !lacks.empty()) {
    lines.push_back({.text = std::move(lacks)});
  }
  if (help_) {
    add_help(lines);
  } else {
    const auto columns = columns_for(size.columns);
    const auto heading = heading_of(order_, columns) +
                         (columns.trend ? fmt::format("{:<{}} ", "TREND", kTrend) : std::string{}) +
                         std::string{name_of(view_).heading};
    lines.push_back({.text = heading, .style = Style::kHeading});
    const std::size_t around = lines.size() + 1;
    const auto free = size.rows > around ? size.rows - around : 0;
    const auto below = !stack_ || free == 0     ? 0
                       : free > 2 * kLeastStack ? std::max(free / 3, kLeastStack)
                                                : free - 1;  // the selected row alone above it
    add_table(profile, {.columns = size.columns, .rows = std::max<std::size_t>(free - below, 1)},
              lines);
    if (below > 0) {
      add_stack(profile, {.columns = size.columns, .rows = below}, lines);
    }
  }
  lines.resize(std::max<std::size_t>(size.rows, 1) - 1);
  std::string bottom = paused_ ? "PAUSED  " : "";
  bottom += facts.note.empty() ? "" : fmt::format("{}  ", facts.note);
  if (typing_) {
    bottom += "show only: " + base::printable(filter_) + "_";
  } else {
    bottom += filter_.empty() ? "" : fmt::format("only '{}'  ", base::printable(filter_));
    bottom += "q quit  h help  1-6 sort  / filter  enter stack  p pause  r reset";
  }
  lines.push_back({.text = bottom, .style = Style::kFaint});
  for (auto& line : lines) {
    line.text = cut(line.text, size.columns);
  }
  return lines;
}

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
  auto text = fmt::format("{} {}\n", heading_of({}), name_of(options.view).heading);
  for (const auto& row : table.rows) {
    text += fmt::format("{} {}{}{}\n", numbers_of(row), base::printable(row.name),
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
            {"gil", profile.gil_share()}};
  if (facts.bpf) {
    json["uses"] = uses_json(profile.uses());
  }
  for (const auto& each : kViews) {
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
      one["gil"] = row.gil;
      if (facts.bpf) {
        one["uses"] = uses_json(row.uses);
      }
      one["wait"] = row.wait;
      one["wait_seconds"] = seconds_of(row.wait_time);
      rows.push_back(std::move(one));
    }
    json[std::string{each.name}] = std::move(rows);
  }
  return json.dump(2) + "\n";
}

}  // namespace pyinject::live
