#include "export/json_text.hpp"
#include "pyinject/export/formats.hpp"
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
// Instead of "python": a function of a greenlet's parent, which does not run.
constexpr std::string_view kSuspended = "suspended";

std::string frame_json(const report::Profile& profile, const report::Frame& frame,
                       std::string_view kind) {
  const auto& function = profile.functions[frame.function];
  const auto file = file_of(profile, function);
  return fmt::format(R"({{"kind":"{}","function":{},"file":{},"line":{}}})", kind,
                     json_string(name_of(profile, function)),
                     file.empty() ? "null" : json_string(file),
                     frame.line == 0 ? "null" : std::to_string(frame.line));
}

}  // namespace

void write_jsonl(const report::Profile& profile, const Sink& out) {
  std::vector<std::string> frames;
  frames.reserve(profile.frames.size());
  for (const auto& frame : profile.frames) {
    const auto kind = profile.functions[frame.function].kind;
    frames.push_back(frame_json(profile, frame, kKinds.at(static_cast<std::size_t>(kind))));
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
    bool in_parent = false;
    append_list(line, frames_of(profile, sample.stack), [&](std::uint32_t frame) {
      const auto& function = function_of(profile, frame);
      line += in_parent && function.kind == report::Kind::kPython
                  ? frame_json(profile, profile.frames[frame], kSuspended)
                  : frames[frame];
      in_parent = in_parent || is_start_of_greenlet(function);
    });
    line += "}\n";
    out(line);
  }
}

}  // namespace pyinject::exports
