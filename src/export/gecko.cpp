#include "base/text.hpp"
#include "export/intern_table.hpp"
#include "export/json_text.hpp"
#include "export/thread_states.hpp"
#include "pyinject/export/formats.hpp"
#include "report/marks.hpp"
#include "report/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::exports {

namespace {

using report::Profile;

constexpr double kNanosecondsPerMillisecond = 1e6;

struct Category {
  std::string_view name;
  std::string_view color;
};
// By Kind; then others.
constexpr std::array<Category, 5> kCategories{{{"Python", "blue"},
                                               {"Native", "yellow"},
                                               {"Kernel", "orange"},
                                               {"Other", "grey"},
                                               {"GC", "purple"}}};
constexpr int kOther = 3;
constexpr int kCollector = 4;

// By type of marker. The profiler shows no marker without one.
constexpr std::string_view kMarkerSchema =
    R"({"name":"tracing","display":["marker-chart","marker-table","timeline-overview"],)"
    R"("data":[]},)"
    R"({"name":"GC","tooltipLabel":"Garbage collection, seen in {marker.data.seen}",)"
    R"("tableLabel":"seen in {marker.data.seen}","chartLabel":"seen in {marker.data.seen}",)"
    R"("display":["marker-chart","marker-table","timeline-overview","timeline-memory"],)"
    R"("data":[{"key":"seen","label":"Seen in","format":"string"},{"label":"Description",)"
    R"("value":"From samples: its real beginning and end are up to one period away."}]})";

// The tables of one thread.
class GeckoThread {
 public:
  GeckoThread(const Profile& profile, const report::UnmarkedStacks& stacks, std::uint64_t begin,
              std::uint64_t interval)
      : profile_{profile}, unmarked_{stacks}, begin_{begin}, states_{interval} {}

  void add(const report::Sample& sample);
  [[nodiscard]] std::string json(const report::Thread& thread);

 private:
  [[nodiscard]] double milliseconds(std::uint64_t time) const {
    return static_cast<double>(time - begin_) / kNanosecondsPerMillisecond;
  }
  std::size_t frame(std::uint32_t number);
  // nullopt: no stack.
  std::int64_t stack(std::uint32_t node);
  [[nodiscard]] std::string markers();

  const Profile& profile_;
  const report::UnmarkedStacks& unmarked_;
  std::uint64_t begin_;
  ThreadStates states_;
  InternTable strings_;
  std::unordered_map<std::uint32_t, std::size_t> frame_numbers_;  // by the profile's frame
  std::vector<std::string> frames_;
  std::unordered_map<std::uint32_t, std::int64_t> stack_numbers_;  // by the profile's node
  std::vector<std::pair<std::int64_t, std::size_t>> stacks_;       // prefix, frame
  std::vector<std::pair<std::int64_t, double>> samples_;           // stack, time
};

std::size_t GeckoThread::frame(std::uint32_t number) {
  const auto [entry, fresh] = frame_numbers_.try_emplace(number, frames_.size());
  if (fresh) {
    const auto& function = function_of(profile_, number);
    const auto line = profile_.frames[number].line;
    const auto file = file_of(profile_, function);
    const auto text = name_of(profile_, function);
    const auto name = strings_.number(file.empty() ? text : fmt::format("{} (in {})", text, file));
    frames_.push_back(fmt::format(
        "[{},false,0,null,null,{},null,{},0]", name, line == 0 ? "null" : std::to_string(line),
        is_garbage_collector(function) ? kCollector : static_cast<int>(function.kind)));
  }
  return entry->second;
}

std::int64_t GeckoThread::stack(std::uint32_t node) {
  std::vector<std::uint32_t> path;
  for (; node != 0 && !stack_numbers_.contains(node); node = profile_.nodes[node].caller) {
    path.push_back(node);
  }
  std::int64_t result = node == 0 ? -1 : stack_numbers_.at(node);
  for (; !path.empty(); path.pop_back()) {
    stacks_.emplace_back(result, frame(profile_.nodes[path.back()].frame));
    result = static_cast<std::int64_t>(stacks_.size()) - 1;
    stack_numbers_.emplace(path.back(), result);
  }
  return result;
}

void GeckoThread::add(const report::Sample& sample) {
  const auto unit = profile_.events[sample.event].unit;
  states_.add(sample, unit, unmarked_.all_marks()[unmarked_.marks(sample.stack)],
              unmarked_.collects(sample.stack));
  if (unit != report::Unit::kWaits) {
    samples_.emplace_back(stack(sample.stack), milliseconds(sample.time));
  }
}

std::string GeckoThread::markers() {
  std::vector<const State*> markers;
  for (std::size_t kind = 0; kind < kStateKinds; ++kind) {
    for (const auto& state : states_.of(static_cast<StateKind>(kind))) {
      markers.push_back(&state);
    }
  }
  std::ranges::stable_sort(markers, {}, &State::begin);
  std::string out;
  append_list(out, markers, [&](const State* marker) {
    const bool collection = marker->samples != 0;
    out += fmt::format("[{},{:.6f},{:.6f},1,{},{}]", strings_.number(marker->name),
                       milliseconds(marker->begin), milliseconds(marker->end),
                       collection ? kCollector : kOther,
                       collection ? fmt::format(R"({{"type":"GC","seen":"{}"}})",
                                                base::counted(marker->samples, "sample"))
                                  : R"({"type":"tracing","category":"Python"})");
  });
  return out;
}

std::string GeckoThread::json(const report::Thread& thread) {
  const auto all_markers = markers();
  std::string out = fmt::format(
      R"({{"name":{},"processName":{},"processType":"default","pid":{},"tid":{},"registerTime":0,)"
      R"("unregisterTime":null,"markers":{{"schema":{{"name":0,"startTime":1,"endTime":2,"phase":3,)"
      R"("category":4,"data":5}},"data":{}}},)",
      json_string(thread.name), json_string(thread.process), thread.pid, thread.tid, all_markers);
  out += R"("samples":{"schema":{"stack":0,"time":1,"eventDelay":2},"data":)";
  append_list(out, samples_, [&](const auto& sample) {
    out += sample.first < 0 ? fmt::format("[null,{:.6f},0]", sample.second)
                            : fmt::format("[{},{:.6f},0]", sample.first, sample.second);
  });
  out +=
      R"(},"frameTable":{"schema":{"location":0,"relevantForJS":1,"innerWindowID":2,)"
      R"("implementation":3,"optimizations":4,"line":5,"column":6,"category":7,"subcategory":8},)"
      R"("data":)";
  append_list(out, frames_, [&](const std::string& frame) { out += frame; });
  out += R"(},"stackTable":{"schema":{"prefix":0,"frame":1},"data":)";
  append_list(out, stacks_, [&](const auto& stack) {
    out += stack.first < 0 ? fmt::format("[null,{}]", stack.second)
                           : fmt::format("[{},{}]", stack.first, stack.second);
  });
  out += R"(},"stringTable":)";
  append_list(out, strings_.texts(), [&](const std::string& text) { out += json_string(text); });
  out += '}';
  return out;
}

// INTERVAL: in milliseconds.
std::string meta(double interval) {
  std::string out = fmt::format(
      R"({{"meta":{{"interval":{:.6f},"processType":0,"product":"perf-pyinject","stackwalk":1,)"
      R"("debug":0,"gcpoison":0,"asyncstack":1,"startTime":0,"shutdownTime":null,"version":24,)"
      R"("presymbolicated":true,"categories":)",
      interval);
  append_list(out, kCategories, [&](const Category& category) {
    out += fmt::format(R"({{"name":"{}","color":"{}","subcategories":["Other"]}})", category.name,
                       category.color);
  });
  out += fmt::format(R"(,"markerSchema":[{}]}},)", kMarkerSchema);
  out += R"("libs":[],"processes":[],"pausedRanges":[],"threads":[)";
  return out;
}

}  // namespace

void write_gecko(const Profile& profile, const Sink& out) {
  const auto interval = interval_of(profile);
  const auto begin = profile.samples.empty() ? 0 : profile.samples.front().time;
  const report::UnmarkedStacks stacks{profile};
  std::map<std::uint32_t, GeckoThread> threads;
  for (const auto& sample : profile.samples) {
    threads.try_emplace(sample.thread, profile, stacks, begin, interval).first->second.add(sample);
  }
  out(meta(static_cast<double>(interval) / kNanosecondsPerMillisecond));
  bool first = true;
  for (auto& [number, thread] : threads) {
    out(first ? "" : ",");
    first = false;
    out(thread.json(profile.threads[number]));
  }
  out("]}\n");
}

}  // namespace pyinject::exports
