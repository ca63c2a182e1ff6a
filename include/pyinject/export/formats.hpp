// Profiles in the formats of other tools.
//
// For example:
//   std::ofstream file{"profile.pb.gz"};
//   exports::write_pprof(profile, [&](std::string_view bytes) { file << bytes; });
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
  std::string_view summary;    // "for go tool pprof, Pyroscope, Parca"
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

// Each stack once, root first: "name;outer;inner 42", with the number of samples, or the
// nanoseconds of waits. CPU events and waits are separate: the first event that is not a wait, or
// the waits if there is no other. The same lines as those of perf-scripts' pyinject-collapsed,
// sorted.
void write_folded(const report::Profile& profile, const Sink& out);
// gzip'ed perftools.profiles.Profile, https://github.com/google/pprof/blob/main/proto/profile.proto
void write_pprof(const report::Profile& profile, const Sink& out);
// https://www.speedscope.app/file-format-schema.json: a profile for each thread and event.
void write_speedscope(const report::Profile& profile, const Sink& out);
// The Gecko format of the Firefox profiler, version 24, as `perf script report gecko` writes it;
// markers show who holds the GIL and waits for it, tasks, and waits.
void write_gecko(const report::Profile& profile, const Sink& out);
// A trace of Perfetto: samples of CPU events as PerfSample packets, states and waits as slices.
void write_perfetto(const report::Profile& profile, const Sink& out);
// See otlp.hpp.
void write_otlp(const report::Profile& profile, const Sink& out);
// One JSON object for each sample; docs/flamegraph.md has the fields.
void write_jsonl(const report::Profile& profile, const Sink& out);

}  // namespace pyinject::exports
