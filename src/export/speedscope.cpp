#include "export/json_text.hpp"
#include "pyinject/export/formats.hpp"
#include "report/marks.hpp"
#include "report/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::exports {

namespace {

using report::Profile;

void append_frames(std::string& out, const Profile& profile) {
  append_list(out, profile.frames, [&](const report::Frame& frame) {
    const auto& function = profile.functions[frame.function];
    out += fmt::format(R"({{"name":{},"file":{})", json_string(name_of(profile, function)),
                       json_string(file_of(profile, function)));
    out += frame.line == 0 ? "}" : fmt::format(R"(,"line":{}}})", frame.line);
  });
}

// A profile of the samples of one thread and event.
void append_profile(std::string& out, const Profile& profile,
                    const std::vector<const report::Sample*>& samples) {
  const auto& event = profile.events[samples.front()->event];
  const auto& thread = profile.threads[samples.front()->thread];
  const std::string_view unit = weighs_time(event.unit)              ? "nanoseconds"
                                : event.unit == report::Unit::kBytes ? "bytes"
                                                                     : "none";
  std::uint64_t sum = 0;
  for (const auto* sample : samples) {
    sum += weight_of(profile, *sample);
  }
  const auto name = fmt::format("{} {}/{}{}", thread.name, thread.pid, thread.tid,
                                profile.events.size() > 1 ? ", " + event.name : "");
  out += fmt::format(
      R"({{"type":"sampled","name":{},"unit":"{}","startValue":0,"endValue":{},"samples":)",
      json_string(name), unit, sum);
  append_list(out, samples, [&](const report::Sample* sample) {
    auto frames = frames_of(profile, sample->stack);
    std::ranges::reverse(frames);
    append_numbers(out, frames, [](std::uint32_t frame) { return frame; });
  });
  out += R"(,"weights":)";
  append_numbers(out, samples,
                 [&](const report::Sample* sample) { return weight_of(profile, *sample); });
  out += '}';
}

}  // namespace

void write_speedscope(const Profile& profile, const Sink& out) {
  // The busiest thread comes first: speedscope shows the first profile.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<const report::Sample*>> parts;
  for (const auto& sample : profile.samples) {
    parts[{sample.event, sample.thread}].push_back(&sample);
  }
  std::vector<const std::vector<const report::Sample*>*> order;
  order.reserve(parts.size());
  for (const auto& [key, samples] : parts) {
    order.push_back(&samples);
  }
  std::ranges::stable_sort(order, [](const auto* left, const auto* right) {
    return std::pair{left->front()->event, right->size()} <
           std::pair{right->front()->event, left->size()};
  });
  std::string text =
      R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"perf-pyinject",)"
      R"("activeProfileIndex":0,"shared":{"frames":)";
  append_frames(text, profile);
  out(text);
  out(R"(},"profiles":[)");
  for (std::size_t i = 0; i < order.size(); ++i) {
    text = i == 0 ? "" : ",";
    append_profile(text, profile, *order[i]);
    out(text);
  }
  out("]}\n");
}

}  // namespace pyinject::exports
