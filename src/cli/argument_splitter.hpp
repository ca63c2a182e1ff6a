// Tells our own options from those of `perf record` and from the command. Pure.
#pragma once

#include "perf/record_options.hpp"

#include <span>
#include <string>
#include <vector>

namespace pyinject::cli {

struct SplitArguments {
  std::vector<std::string> own;      // normalised: "--pid=1", "--all-cpus"
  std::vector<std::string> perf;     // unchanged and in order
  std::vector<std::string> command;  // what follows the options
  bool separator = false;            // there was a "--"
};

// OWN: the options that are ours (perf's of the same name included). WITH_PERF: others are for
// perf; else they are a mistake. Throws CommandLineError.
[[nodiscard]] SplitArguments split_arguments(std::span<const std::string> words,
                                             std::span<const perf::RecordOption> own,
                                             bool with_perf);

}  // namespace pyinject::cli
