#include "export/formats.hpp"
#include "export/json_text.hpp"
#include "report/marks.hpp"
#include "report/names.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::exports {

namespace {

constexpr std::array<std::string_view, 4> kKinds{"python", "native", "kernel", "mark"};

std::string frame_json(const report::Profile& profile, const report::Frame& frame) {
  const auto& function = profile.functions[frame.function];
  auto text = fmt::format(
      R"({{"kind":"{}","name":{},"file":{})", kKinds.at(static_cast<std::size_t>(function.kind)),
      json_string(name_of(profile, function)), json_string(file_of(profile, function)));
  text += frame.line == 0 ? "}" : fmt::format(R"(,"line":{}}})", frame.line);
  return text;
}

}  // namespace

void write_jsonl(const report::Profile& profile, const Sink& out) {
  std::vector<std::string> frames;
  frames.reserve(profile.frames.size());
  for (const auto& frame : profile.frames) {
    frames.push_back(frame_json(profile, frame));
  }
  for (const auto& sample : profile.samples) {
    const auto& event = profile.events[sample.event];
    const auto& thread = profile.threads[sample.thread];
    auto line = fmt::format(
        R"({{"time_ns":{},"event":{},"period":{},"unit":"{}","pid":{},"tid":{},"comm":{},"stack":)",
        sample.time, json_string(event.name), sample.period,
        has_time(event.unit)                 ? "ns"
        : event.unit == report::Unit::kBytes ? "bytes"
                                             : "count",
        thread.pid, thread.tid, json_string(thread.name));
    append_list(line, frames_of(profile, sample.stack),
                [&](std::uint32_t frame) { line += frames[frame]; });
    line += "}\n";
    out(line);
  }
}

}  // namespace pyinject::exports
