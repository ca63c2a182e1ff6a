#include "live/live_view.hpp"

#include "base/text.hpp"
#include "live/row_text.hpp"
#include "live/view_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace pyinject::live {

namespace {

constexpr std::size_t kLeastStack = 5;

// What uses much of a CPU stands out from what only waits.
Style style_of(const Row& row) {
  constexpr double kMuch = 0.1;
  return row.self >= kMuch ? Style::kHot : row.total > 0 ? Style::kPlain : Style::kFaint;
}

// COMMAND without the directories of its words: "python3 shop.py".
std::string without_directories(std::string_view command) {
  std::string text;
  for (const auto word : base::split(command, ' ')) {
    text += fmt::format("{}{}", text.empty() ? "" : " ",
                        word.starts_with('/') ? word.substr(word.rfind('/') + 1) : word);
  }
  return text;
}

// "python3 shop.py (pid 4711)" in at most COLUMNS characters, with the pid.
std::string target_of(const SessionFacts& facts, std::size_t columns) {
  constexpr std::string_view kMore = "...";
  if (facts.target.empty()) {
    return "perf-pyinject top  " + base::counted(facts.processes, "process", "processes");
  }
  auto text = base::printable(facts.target);
  if (columns_of(text) > columns) {
    text = without_directories(text);
  }
  const auto pid = std::min(text.rfind(" ("), text.size());
  const auto room = columns - std::min(columns, text.size() - pid + kMore.size());
  return columns_of(text) <= columns
             ? text
             : fmt::format("{}{}{}", cut(text.substr(0, pid), room), kMore, text.substr(pid));
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
  constexpr std::string_view kOfOrders = "123456";
  if (const auto order = kOfOrders.find(character); order != std::string_view::npos) {
    sort_by(static_cast<Order>(order));
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
    case 's':
      sort_by(Order::kSelf);
      break;
    case 'w':
      sort_by(Order::kWait);
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

void LiveView::sort_by(Order order) {
  order_ = order;
  selected_ = first_ = 0;
}

void LiveView::move(std::ptrdiff_t by) {
  const auto most = count_ == 0 ? 0 : count_ - 1;
  const auto to = static_cast<std::ptrdiff_t>(selected_) + by;
  selected_ = std::min(to < 0 ? 0 : static_cast<std::size_t>(to), most);
}

void LiveView::add_table(const Profile& profile, const Columns& columns, Size size,
                         std::vector<ScreenLine>& lines) {
  const auto table = profile.table({.view = view_, .order = order_, .filter = filter_});
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
    auto text = numbers_of(row, columns, utf8_);
    text += name_and_place(view_, row, size.columns - std::min(size.columns, columns_of(text)));
    lines.push_back({.text = cut(text, size.columns),
                     .style = index == selected_ ? Style::kSelected : style_of(row)});
  }
}

void LiveView::add_stack(const Profile& profile, Size size, std::vector<ScreenLine>& lines) const {
  const auto stack = profile.stack_of(view_, selected_id_);
  lines.push_back({.text = cut("its most frequent stack, innermost function first", size.columns),
                   .style = Style::kHeading});
  for (std::size_t i = 0; i + 1 < size.rows; ++i) {
    const bool last = i + 2 == size.rows && i + 1 < stack.size();
    lines.push_back(
        {.text = i >= stack.size() ? std::string{}
                 : last            ? fmt::format("  ... {} more", stack.size() - i)
                                   : "  " + name_and_place(
                                                stack[i].name, stack[i].file, stack[i].line,
                                                size.columns - std::min<std::size_t>(size.columns, 2))});
  }
}

void LiveView::add_help(std::vector<ScreenLine>& lines) {
  for (const auto* const text :
       {"f functions   l lines   c C functions that Python called",
        "t threads     a tasks, greenlets         P processes",
        "s w           sort by SELF%, by WAIT%",
        "1 2 3 4 5 6   by SELF%, TOTAL%, SELF s, TOTAL s, GIL%, WAIT%",
        "up down j k   select a row",
        "enter         show the most frequent stack of the selected row",
        "/             show only rows that contain the text; escape: all",
        "p, space      pause the display (sampling goes on)",
        "r             start again from zero",
        "h ?           this help",
        "q             quit",
        "",
        "SELF%, TOTAL%: share of one CPU in the latest ten seconds, without and with",
        "the functions that it calls. SELF s, TOTAL s: since the start, or since r.",
        "MOSTLY: what takes most of SELF s and of the waits: byte code (python), C",
        "functions (c), gc, import, kernel; gil, lock, thread (queue, event), network,",
        "poll, disk, child, pipe, sleep, futex.",
        "GIL%: the part of SELF% in which the thread held the GIL.",
        "WAIT%: threads off the CPU in this function, without those that it calls:",
        "100 % is one thread that waits all the time."}) {
    lines.push_back({.text = text});
  }
}

std::vector<ScreenLine> LiveView::lines(const Profile& profile, const SessionFacts& facts,
                                        Size size) {
  std::vector<ScreenLine> lines;
  const auto numbers = fmt::format(
      "  CPU {:.0f}%  {}{}{:.0f} s  {}  {}", 100 * profile.share(),
      profile.has_gil() ? fmt::format("GIL {:.0f}%  ", 100 * profile.gil_share()) : "no GIL  ",
      facts.lost == 0 ? "" : fmt::format("{} lost  ", facts.lost), seconds_of(profile.length()),
      base::counted(profile.samples(), "sample"),
      facts.bpf ? fmt::format("{} Hz", facts.frequency) : "no BPF");
  const auto room = size.columns - std::min(size.columns, numbers.size());
  lines.push_back({.text = target_of(facts, room) + numbers, .style = Style::kTitle});
  std::string views;
  for (const auto& each : kViews) {
    const bool chosen = each.view == view_;
    views +=
        fmt::format("{}{} {}{} ", chosen ? '[' : ' ', each.key, each.shown, chosen ? ']' : ' ');
  }
  lines.push_back({.text = views});
  constexpr std::size_t kEnough = 16;  // smaller screens need their rows for the table
  if (facts.bpf && size.rows >= kEnough) {
    lines.push_back({.text = uses_text(profile)});
  }
  if (auto lacks = incompleteness(profile, facts); !lacks.empty()) {
    lines.push_back({.text = std::move(lacks)});
  }
  if (view_ == View::kC && !facts.bpf) {
    lines.push_back({.text = "C functions are not known without BPF"});
  }
  if (help_) {
    add_help(lines);
  } else {
    const auto columns = columns_for(size.columns, order_, facts.bpf, profile.has_gil());
    const auto heading = heading_of(order_, columns) + std::string{name_of(view_).heading};
    lines.push_back({.text = heading, .style = Style::kHeading});
    const std::size_t around = lines.size() + 1;
    const auto free = size.rows > around ? size.rows - around : 0;
    const auto below = !stack_ || free == 0     ? 0
                       : free > 2 * kLeastStack ? std::max(free / 3, kLeastStack)
                                                : free - 1;  // the selected row alone above it
    add_table(profile, columns,
              {.columns = size.columns, .rows = std::max<std::size_t>(free - below, 1)}, lines);
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
    bottom += "q quit  h help  s w sort  / filter  enter stack  p pause  r reset";
  }
  lines.push_back({.text = bottom, .style = Style::kFaint});
  for (auto& line : lines) {
    line.text = cut(line.text, size.columns);
  }
  return lines;
}

}  // namespace pyinject::live
