#include "cli/verb_options.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <array>

namespace pyinject::cli {

namespace {

namespace options = boost::program_options;
using perf::OptionArgument;
using perf::RecordOption;

constexpr auto kNone = OptionArgument::kNone;
constexpr auto kRequired = OptionArgument::kRequired;

constexpr auto kGlobal = std::to_array<RecordOption>({
    {"help", 'h', kNone},
    {"version", 0, kNone},
});
constexpr auto kRecord = std::to_array<RecordOption>({
    {"help", 'h', kNone},      {"quiet", 'q', kNone},        {"verbose", 'v', kNone},
    {"pid", 'p', kRequired},   {"all-cpus", 'a', kNone},     {"uid", 'u', kRequired},
    {"comm", 0, kRequired},    {"cgroup", 'G', kRequired},   {"children", 0, kNone},
    {"perf", 0, kRequired},    {"strict", 0, kNone},         {"lenient", 0, kNone},
    {"no-backfill", 0, kNone}, {"lines", 0, kNone},          {"keep-raw", 0, kNone},
    {"repeat", 0, kRequired},  {"keep", 0, kRequired},       {"deactivate-timeout", 0, kRequired},
    {"stats", 0, kRequired},   {"log-format", 0, kRequired}, {"engine", 0, kRequired},
    {"gil", 0, kNone},         {"tasks", 0, kNone},          {"off-cpu", 0, kNone},
    {"functions", 0, kNone},
});
constexpr auto kFunctions = std::to_array<RecordOption>({
    {"help", 'h', kNone},
    {"quiet", 'q', kNone},
    {"verbose", 'v', kNone},
    {"input", 'i', kRequired},
    {"timeline", 0, kNone},
    {"json", 0, kNone},
    {"log-format", 0, kRequired},
});
constexpr auto kWeave = std::to_array<RecordOption>({
    {"help", 'h', kNone},
    {"quiet", 'q', kNone},
    {"verbose", 'v', kNone},
    {"output", 'o', kRequired},
    {"perf", 0, kRequired},
    {"log-format", 0, kRequired},
});
constexpr auto kJoin = std::to_array<RecordOption>({
    {"help", 'h', kNone},
    {"quiet", 'q', kNone},
    {"verbose", 'v', kNone},
    {"perf", 0, kRequired},
    {"gil", 0, kNone},
    {"tasks", 0, kNone},
    {"lines", 0, kNone},
    {"keep-raw", 0, kNone},
    {"stats", 0, kRequired},
    {"log-format", 0, kRequired},
});
constexpr auto kActivate = std::to_array<RecordOption>({
    {"help", 'h', kNone},
    {"quiet", 'q', kNone},
    {"verbose", 'v', kNone},
    {"pid", 'p', kRequired},
    {"strict", 0, kNone},
    {"lenient", 0, kNone},
    {"deactivate-timeout", 0, kRequired},
    {"stats", 0, kRequired},
    {"log-format", 0, kRequired},
});
constexpr auto kDeactivate = std::to_array<RecordOption>({
    {"help", 'h', kNone},
    {"quiet", 'q', kNone},
    {"verbose", 'v', kNone},
    {"pid", 'p', kRequired},
    {"abandoned", 0, kNone},
    {"deactivate-timeout", 0, kRequired},
    {"stats", 0, kRequired},
    {"log-format", 0, kRequired},
});
constexpr auto kStatus = std::to_array<RecordOption>({
    {"help", 'h', kNone},
    {"quiet", 'q', kNone},
    {"verbose", 'v', kNone},
    {"pid", 'p', kRequired},
    {"json", 0, kNone},
    {"log-format", 0, kRequired},
});

constexpr auto kVerbs = std::to_array<VerbOptions>({
    {"record", Verb::kRecord, kRecord},
    {"join", Verb::kJoin, kJoin},
    {"functions", Verb::kFunctions, kFunctions},
    {"weave", Verb::kWeave, kWeave},
    {"activate", Verb::kActivate, kActivate},
    {"deactivate", Verb::kDeactivate, kDeactivate},
    {"status", Verb::kStatus, kStatus},
});

}  // namespace

std::span<const RecordOption> global_options() { return kGlobal; }

// command-list.txt of tools/perf, Linux 7.2.
bool is_verb_of_perf(std::string_view name) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"annotate", "archive",  "bench",  "buildid-cache", "buildid-list", "c2c",       "check",
       "config",   "daemon",   "data",   "diff",          "evlist",       "ftrace",    "inject",
       "iostat",   "kallsyms", "kvm",    "kwork",         "list",         "lock",      "mem",
       "probe",    "report",   "script", "stat",          "test",         "timechart", "version"});
  return std::ranges::find(kNames, name) != kNames.end();
}

std::span<const std::string_view> verb_names() {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"record", "trace", "top", "sched", "kmem", "join",
                                       "functions", "weave", "activate", "deactivate", "status"});
  return kNames;
}

const VerbOptions* find_verb(std::string_view name) {
  const auto* const found = std::ranges::find(kVerbs, name, &VerbOptions::name);
  return found == kVerbs.end() ? nullptr : found;
}

options::variables_map store_own(std::span<const RecordOption> own,
                                 const std::vector<std::string>& words) {
  options::options_description description;
  for (const auto& option : own) {
    const std::string name{option.long_name};
    if (name == "pid") {
      description.add_options()(name.c_str(),
                                options::value<std::vector<std::string>>()->composing());
    } else if (option.argument == kRequired) {
      description.add_options()(name.c_str(), options::value<std::string>());
    } else {
      // As often as one likes, like perf.
      description.add_options()(name.c_str(),
                                options::value<std::vector<bool>>()->zero_tokens()->composing());
    }
  }
  options::variables_map values;
  try {
    options::store(options::command_line_parser(words)
                       .options(description)
                       .style(options::command_line_style::allow_long |
                              options::command_line_style::long_allow_adjacent)
                       .run(),
                   values);
  } catch (const options::error& error) {
    throw CommandLineError{error.what(), session::kUsage};
  }
  options::notify(values);
  return values;
}

}  // namespace pyinject::cli
