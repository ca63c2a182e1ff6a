// Profiles in the formats of other tools.
//
// For example:
//   std::ofstream file{"profile.pb.gz"};
//   exports::find_format("pprof")->write(profile, [&](std::string_view bytes) { file << bytes; });
#pragma once

#include "pyinject/report/profile.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace pyinject::exports {

// Takes the next piece of the output.
using Sink = std::function<void(std::string_view)>;

struct Format {
  std::string_view name;       // "pprof"
  std::string_view suffix;     // of a file, ".pb.gz"
  std::string_view summary;    // "go tool pprof, Pyroscope, Parca"; in the help text
  bool text = true;            // fit for a terminal
  std::string_view caution{};  // a warning with each export; empty: none
  void (*write)(const report::Profile& profile, const Sink& out) = nullptr;
};

// In the order of the help text.
[[nodiscard]] std::span<const Format> formats();
// nullptr: none has this NAME.
[[nodiscard]] const Format* find_format(std::string_view name);
// The format whose suffix FILE ends with; nullptr: none.
[[nodiscard]] const Format* format_of_file(std::string_view file);

}  // namespace pyinject::exports
