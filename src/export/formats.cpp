#include "pyinject/export/formats.hpp"

#include "export/otlp.hpp"

#include <algorithm>
#include <array>

namespace pyinject::exports {

// Each in its own file.
// NOLINTBEGIN(readability-redundant-declaration): in a unity build, that file may come first
//
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
// NOLINTEND(readability-redundant-declaration)

namespace {

constexpr auto kFormats = std::to_array<Format>({
    {.name = "folded",
     .suffix = ".folded",
     .summary = "a line for each stack, for flamegraph.pl and the like",
     .write = write_folded},
    {.name = "pprof",
     .suffix = ".pb.gz",
     .summary = "go tool pprof, Pyroscope, Parca, Perfetto; with labels for pid, tid, thread, "
                "process, task, GIL and use of time",
     .text = false,
     .write = write_pprof},
    {.name = "speedscope",
     .suffix = ".speedscope.json",
     .summary = "speedscope",
     .write = write_speedscope},
    {.name = "gecko",
     .suffix = ".gecko.json",
     .summary = "the Firefox profiler, with a timeline and markers",
     .write = write_gecko},
    {.name = "perfetto",
     .suffix = ".perfetto-trace",
     .summary = "Perfetto (ui.perfetto.dev), with a timeline and slices",
     .text = false,
     .write = write_perfetto},
    {.name = "otlp",
     .suffix = ".otlp",
     .summary = "OpenTelemetry collectors and stores; the protocol is in alpha",
     .text = false,
     .caution = kOtlpCaution,
     .write = write_otlp},
    {.name = "jsonl",
     .suffix = ".jsonl",
     .summary = "a JSON object for each sample, for programs of your own",
     .write = write_jsonl},
});

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* find_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &Format::name);
  return found == kFormats.end() ? nullptr : &*found;
}

const Format* format_of_file(std::string_view file) {
  const auto found = std::ranges::find_if(
      kFormats, [file](const Format& format) { return file.ends_with(format.suffix); });
  return found == kFormats.end() ? nullptr : &*found;
}

}  // namespace pyinject::exports
