#include "calls/call_report.hpp"

#include "base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pyinject::calls {

namespace {

using nlohmann::ordered_json;
using Kind = CallEvent::Kind;

constexpr std::size_t kChunk = std::size_t{64} << 10U;
constexpr std::size_t kMostIndented = 40;

std::string seconds(std::uint64_t nanoseconds, int digits) {
  return fmt::format("{:.{}f}", static_cast<double>(nanoseconds) / 1e9, digits);
}

// "work  app.py:12"; without the line if it is unknown.
std::string described(const Function& function) {
  const auto file = base::printable(function.file);
  return base::printable(function.name) + "  " +
         (function.line > 0 ? fmt::format("{}:{}", file, function.line) : file);
}

std::string dumped(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string line_of(const CallEvent& event, const Function& function, const CallStep& step,
                    std::uint64_t begin) {
  const bool entry = event.kind == Kind::kEntry;
  const auto indent = 2 * std::min(step.depth, kMostIndented);
  return fmt::format("{:>14}  {}/{}  {:{}}{} {}{}\n", seconds(event.time - begin, 9), event.pid,
                     event.tid, "", indent, entry ? ">" : "<", described(function),
                     step.span > 0 ? "  " + seconds(step.span, 9) + " s" : std::string{});
}

std::string json_of(const CallEvent& event, const Function& function, const CallStep& step) {
  const bool entry = event.kind == Kind::kEntry;
  ordered_json object{{"time", event.time},        {"pid", event.pid},
                      {"tid", event.tid},          {"event", entry ? "entry" : "return"},
                      {"function", function.name}, {"file", function.file},
                      {"begins", function.line},   {"line", event.line},
                      {"depth", step.depth}};
  if (!entry && event.partner != CallEvent::kNone) {
    object["nanoseconds"] = step.span;
  }
  return dumped(object) + "\n";
}

}  // namespace

std::string to_table(const CallTrace& trace, const std::vector<FunctionTimes>& times) {
  std::string text = fmt::format("{:>12}  {:>12}  {:>14}  {:>14}  {:>12}  {}\n", "CALLS",
                                 "RETURNED", "INCLUSIVE s", "OWN s", "OWN us/CALL", "FUNCTION");
  for (const auto& one : times) {
    const auto average = one.returned == 0
                             ? std::string{"-"}
                             : fmt::format("{:.2f}", static_cast<double>(one.own) / 1e3 /
                                                         static_cast<double>(one.returned));
    text += fmt::format("{:>12}  {:>12}  {:>14}  {:>14}  {:>12}  {}\n", one.calls, one.returned,
                        seconds(one.inclusive, 6), seconds(one.own, 6), average,
                        described(trace.functions[one.function]));
  }
  return text;
}

std::string to_json(const CallTrace& trace, const std::vector<FunctionTimes>& times) {
  ordered_json all;
  all["schema"] = 1;
  std::uint64_t calls = 0;
  auto functions = ordered_json::array();
  for (const auto& one : times) {
    calls += one.calls;
    const auto& function = trace.functions[one.function];
    functions.push_back({{"function", function.name},
                         {"file", function.file},
                         {"line", function.line},
                         {"calls", one.calls},
                         {"returned", one.returned},
                         {"inclusive_nanoseconds", one.inclusive},
                         {"own_nanoseconds", one.own},
                         {"longest_nanoseconds", one.longest}});
  }
  all["calls"] = calls;
  all["lost"] = trace.lost;
  all["unreadable"] = trace.unreadable;
  all["damage"] = trace.damage;
  all["functions"] = std::move(functions);
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void write_timeline(const CallTrace& trace, bool json, const Sink& out) {
  CallTimes times{trace};
  std::string chunk;
  const auto begin = trace.events.empty() ? 0 : trace.events.front().time;
  for (const auto& event : trace.events) {
    const auto step = times.add(event);
    if (event.kind == Kind::kThread) {
      continue;
    }
    const auto& function = trace.functions[event.function];
    chunk += json ? json_of(event, function, step) : line_of(event, function, step, begin);
    if (chunk.size() >= kChunk) {
      out(chunk);
      chunk.clear();
    }
  }
  out(chunk);
}

}  // namespace pyinject::calls
