#include "pyinject/export/formats.hpp"
#include "report/marks.hpp"
#include "report/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

namespace pyinject::exports {

namespace {

using report::Kind;
using report::Profile;

// The first event with samples that is not a wait; else that of the waits.
std::optional<std::uint32_t> main_event(const Profile& profile) {
  std::optional<std::uint32_t> result;
  for (const auto& sample : profile.samples) {
    if (profile.events[sample.event].unit != report::Unit::kWaits) {
      return sample.event;
    }
    result = sample.event;
  }
  return result;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A name that readers of folded stacks take for one name: no separators, and no blank before digits
// at the end, which they would take for the count.
std::string folded_name(std::string name) {
  for (auto& c : name) {
    c = c == ';' ? ':' : (c >= '\t' && c <= '\r') || c == '\0' ? ' ' : c;
  }
  const auto digits = std::find_if_not(name.rbegin(), name.rend(), is_digit).base();
  if (digits != name.end() && digits != name.begin() && *(digits - 1) == ' ') {
    *(digits - 1) = '_';
  }
  return name;
}

std::string frame_name(const Profile& profile, std::uint32_t frame) {
  const auto& function = function_of(profile, frame);
  const auto line = profile.frames[frame].line;
  auto name = name_of(profile, function);
  switch (function.kind) {
    case Kind::kPython:
      name = fmt::format("py::{}{}{}", name, function.file.empty() ? "" : ":", function.file);
      name += line == 0 ? "" : fmt::format(":{}", line);
      break;
    case Kind::kKernel:
      name += "_[k]";
      break;
    case Kind::kNative:
    case Kind::kMark:
      break;
  }
  return folded_name(std::move(name));
}

}  // namespace

void write_folded(const Profile& profile, const Sink& out) {
  const auto event = main_event(profile);
  if (!event) {
    return;
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counts;  // by thread and stack
  for (const auto& sample : profile.samples) {
    if (sample.event == *event) {
      counts[{sample.thread, sample.stack}] += weight_of(profile, sample);
    }
  }
  std::unordered_map<std::uint32_t, std::string> names;  // by frame
  std::map<std::string, std::uint64_t> lines;
  for (const auto& [key, count] : counts) {
    auto line = folded_name(profile.threads[key.first].name);
    auto frames = frames_of(profile, key.second);
    for (; !frames.empty(); frames.pop_back()) {
      const auto [name, fresh] = names.try_emplace(frames.back());
      if (fresh) {
        name->second = frame_name(profile, frames.back());
      }
      line += ';';
      line += name->second;
    }
    lines[line] += count;
  }
  for (const auto& [line, count] : lines) {
    out(fmt::format("{} {}\n", line, count));
  }
}

}  // namespace pyinject::exports
