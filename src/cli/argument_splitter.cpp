#include "cli/argument_splitter.hpp"

#include "base/text.hpp"
#include "cli/command_line.hpp"
#include "cli/did_you_mean.hpp"
#include "perf/record_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace pyinject::cli {

namespace {

using perf::OptionArgument;
using perf::RecordOption;
using perf::ScannedOption;

// Until 0.2, and of perf record another option.
constexpr std::string_view kOldName = "delay";
constexpr std::string_view kNewName = "duration";

std::vector<RecordOption> scanned_as(std::span<const Option> options, bool with_perf) {
  std::vector<RecordOption> result(options.size());
  std::ranges::transform(options, result.begin(), [](const Option& option) -> RecordOption {
    return {option.long_name(), option.short_name(),
            option.has_value() ? OptionArgument::kRequired : OptionArgument::kNone};
  });
  if (!with_perf && std::ranges::find(options, kNewName, &Option::long_name) != options.end()) {
    result.push_back({kOldName, 0, OptionArgument::kRequired});
  }
  return result;
}

bool is_in(const RecordOption* option, std::span<const RecordOption> table) {
  return option != nullptr && option >= table.data() && option < table.data() + table.size();
}

// perf options that cannot be passed on.
void refuse(const ScannedOption& one) {
  static constexpr auto kRefused = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"delay",
       "perf-pyinject enables the events and starts the command when the targets are active"},
      {"control", "perf-pyinject itself uses perf's control channel to start and stop the events"},
      {"tid", "single threads cannot be selected: name the process with -p"},
      {"kernel-callchains", "without the stack in user space there are no Python functions"},
  });
  const auto option = one.option == nullptr ? std::string_view{} : one.option->long_name;
  const auto refused = [&](std::string_view why) {
    throw CommandLineError{fmt::format("option {}: {}", one.words.front(), why), record::kUsage};
  };
  for (const auto& [name, why] : kRefused) {
    if (option == name) {
      refused(why);
    }
  }
  if (option == "timestamp" && one.negated) {
    refused("without times, a sample cannot be matched with its Python functions");
  }
  if (option == "synth" && one.value.find("all") == std::string::npos &&
      one.value.find("mmap") == std::string::npos) {
    refused("without the mappings of running processes, no function has a name");
  }
}

// WORD is in none of TABLES. A newer perf may know it, unless it looks mistyped.
void refuse_unknown(std::string_view word, std::span<const std::span<const RecordOption>> tables,
                    bool with_perf) {
  const auto name = word.substr(0, word.find('='));
  std::optional<std::string_view> meant;
  if (name.starts_with("--")) {
    std::vector<std::string_view> known;
    for (const auto table : tables) {
      for (const auto& option : table) {
        known.push_back(option.long_name);
      }
    }
    std::ranges::sort(known);
    known.erase(std::unique(known.begin(), known.end()), known.end());  // clang 14: no ranges
    meant = did_you_mean(name.substr(2), known);
  }
  if (meant || !with_perf) {
    throw CommandLineError{fmt::format("unknown option {}{}", base::printable(name),
                                       meant ? fmt::format(": did you mean --{}?", *meant) : ""),
                           record::kUsage};
  }
}

std::string normalised(const ScannedOption& one) {
  std::string text =
      fmt::format("--{}", one.option->long_name == kOldName ? kNewName : one.option->long_name);
  if (one.negated) {
    throw CommandLineError{fmt::format("option {} cannot be negated", one.words.front()),
                           record::kUsage};
  }
  if (one.option->argument == OptionArgument::kRequired) {
    if (one.value.empty()) {
      throw CommandLineError{fmt::format("option {}: its value is empty", text), record::kUsage};
    }
    text += "=" + one.value;
  } else if (!one.value.empty()) {
    throw CommandLineError{fmt::format("option {} takes no value", text), record::kUsage};
  }
  return text;
}

// The words of a group that are for perf. Reassembles clusters, so that a cluster without options
// of this tool is unchanged.
void append_for_perf(const std::vector<ScannedOption>& group, std::vector<std::string>& perf) {
  std::string cluster;
  std::vector<std::string> values;
  for (const auto& one : group) {
    const bool is_short = !one.words.front().starts_with("--");
    if (!is_short) {
      perf.insert(perf.end(), one.words.begin(), one.words.end());
      continue;
    }
    cluster += cluster.empty() ? one.words.front() : one.words.front().substr(1);
    values.insert(values.end(), one.words.begin() + 1, one.words.end());
  }
  if (!cluster.empty()) {
    perf.push_back(cluster);
    perf.insert(perf.end(), values.begin(), values.end());
  }
}

}  // namespace

SplitArguments split_arguments(std::span<const std::string> words, std::span<const Option> own,
                               bool with_perf) {
  const auto table = scanned_as(own, with_perf);
  const std::array both = {std::span{table}, perf::record_options()};
  auto scanned = perf::scan_words(words, std::span{both}.first(with_perf ? 2 : 1));
  if (!scanned.problems.empty()) {
    throw CommandLineError{scanned.problems.front(), record::kUsage};
  }
  SplitArguments result;
  for (auto& group : scanned.groups) {
    std::vector<ScannedOption> others;
    for (auto& one : group) {
      if (is_in(one.option, table)) {
        result.own.push_back(normalised(one));
        continue;
      }
      if (one.option == nullptr) {
        refuse_unknown(one.words.front(), std::span{both}.first(with_perf ? 2 : 1), with_perf);
      } else if (!with_perf) {
        throw CommandLineError{fmt::format("unknown option {}", one.words.front()), record::kUsage};
      }
      refuse(one);
      others.push_back(std::move(one));
    }
    append_for_perf(others, result.perf);
  }
  result.command = std::move(scanned.command);
  result.separator = scanned.separator;
  return result;
}

}  // namespace pyinject::cli
