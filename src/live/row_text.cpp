#include "live/row_text.hpp"

#include "base/source_path.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>

namespace pyinject::live {

namespace {

struct OrderName {
  Order order;
  std::string_view heading;
  std::size_t width;
  bool Columns::*shown = nullptr;  // nullptr: always
};
constexpr auto kOrders = std::to_array<OrderName>({
    {Order::kSelf, "SELF%", 6},
    {Order::kTotal, "TOTAL%", 7},
    {Order::kSelfTime, "SELF s", 7, &Columns::times},
    {Order::kTotalTime, "TOTAL s", 8, &Columns::times},
    {Order::kGil, "GIL%", 5, &Columns::gil},
    {Order::kWait, "WAIT%", 6, &Columns::wait},
});

constexpr std::size_t kTrend = 10;  // intervals that are drawn
constexpr std::size_t kMostly = 7;  // "unknown"

// One column for each interval: eight heights up to a whole CPU.
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

// On a CPU or off it.
std::string_view mostly(const Row& row) {
  auto all = row.waits;
  std::ranges::transform(row.uses, all, all.begin(), std::plus{});
  const auto* const most = std::ranges::max_element(all);
  return *most > 0 ? sample::kUseFacts.at(static_cast<std::size_t>(most - all.begin())).name
                   : std::string_view{};
}

// As many of the last characters of TEXT, with "..." before them if there are more.
std::string cut_start(std::string_view text, std::size_t columns) {
  constexpr std::string_view kMore = "...";
  const auto all = columns_of(text);
  if (all <= columns) {
    return std::string{text};
  }
  auto drop = all - (columns > kMore.size() ? columns - kMore.size() : 0);
  std::size_t begin = 0;
  while (begin < text.size() && (drop > 0 || !begins_character(text[begin]))) {
    drop -= begins_character(text[begin]) ? 1 : 0;
    ++begin;
  }
  return fmt::format("{}{}", kMore, text.substr(begin));
}

}  // namespace

Columns columns_for(std::size_t width, Order order, bool uses, bool gil) {
  constexpr std::size_t kLeastName = 48;
  Columns columns{.wait = false, .mostly = false, .gil = false, .trend = false, .times = false};
  auto needed = kLeastName + 15;  // SELF% and TOTAL%
  const auto add = [&](bool& shown, std::size_t more) {
    needed += more;
    shown = width >= needed;
  };
  add(columns.wait, 7);
  add(columns.mostly, kMostly + 1);
  add(columns.gil, 6);
  add(columns.trend, kTrend + 1);
  add(columns.times, 17);
  columns.mostly = columns.mostly && uses;
  for (const auto& each : kOrders) {
    if (each.order == order && each.shown != nullptr) {
      columns.*each.shown = true;
    }
  }
  columns.gil = columns.gil && gil;
  return columns;
}

std::string heading_of(std::optional<Order> order, const Columns& columns) {
  std::string text;
  for (const auto& each : kOrders) {
    if (each.shown == nullptr || columns.*each.shown) {
      text += fmt::format(
          "{:>{}} ", std::string{each.order == order ? "*" : ""}.append(each.heading), each.width);
    }
  }
  text += columns.mostly ? fmt::format("{:<{}} ", "MOSTLY", kMostly) : "";
  return text + (columns.trend ? fmt::format("{:<{}} ", "TREND", kTrend) : "");
}

std::string numbers_of(const Row& row, const Columns& columns, bool utf8) {
  auto text = fmt::format("{:6.1f} {:7.1f} ", 100 * row.self, 100 * row.total);
  if (columns.times) {
    text += fmt::format("{:7.1f} {:8.1f} ", seconds_of(row.self_time), seconds_of(row.total_time));
  }
  text += columns.gil ? fmt::format("{:5.1f} ", 100 * row.gil) : "";
  text += columns.wait ? fmt::format("{:6.1f} ", 100 * row.wait) : "";
  text += columns.mostly ? fmt::format("{:<{}} ", mostly(row), kMostly) : "";
  return text + (columns.trend ? trend(row.history, utf8) + " " : "");
}

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

std::string name_and_place(std::string_view name, std::string_view file, std::uint32_t line,
                           std::size_t columns) {
  constexpr std::size_t kLeastName = 12;
  const auto shown = base::printable(name);
  if (file.empty()) {
    return cut(shown, columns);
  }
  const auto number = line == 0 ? std::string{} : fmt::format(":{}", line);
  auto place = base::printable(base::short_path(file)) + number;
  const auto used = columns_of(shown) + 2;
  // "/srv/shop/views/cart.py:7", "shop/views/cart.py:7", "views/cart.py:7", "cart.py:7"
  for (auto slash = place.find('/');
       used + columns_of(place) > columns && slash != std::string::npos; slash = place.find('/')) {
    place.erase(0, slash + 1);
  }
  const auto room = columns - std::min(columns, columns_of(place) + 2);
  return room < std::min(kLeastName, columns_of(shown))
             ? cut(shown, columns)
             : fmt::format("{}  {}", cut_start(shown, room), place);
}

std::string name_and_place(View view, const Row& row, std::size_t columns) {
  return name_and_place(row.name, row.place, view == View::kTasks ? 0 : row.line, columns);
}

}  // namespace pyinject::live
