#include "pyinject/export/formats.hpp"

#include "export/otlp.hpp"

#include <algorithm>
#include <array>

namespace pyinject::exports {

namespace {

constexpr auto kFormats = std::to_array<Format>({
    {.name = "folded",
     .suffix = ".folded",
     .summary = "a line for each stack, for flamegraph.pl and the like",
     .write = write_folded},
    {.name = "pprof",
     .suffix = ".pb.gz",
     .summary = "go tool pprof, Pyroscope, Parca, Perfetto",
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
     .summary = "Perfetto, with a timeline and slices",
     .text = false,
     .write = write_perfetto},
    {.name = "otlp",
     .suffix = ".otlp",
     .summary = "OpenTelemetry collectors and stores",
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
