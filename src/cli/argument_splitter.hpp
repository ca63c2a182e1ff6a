// Separates the tool's own options from those of `perf record` and from the command. Pure.
#pragma once

#include "cli/option.hpp"

#include <span>
#include <string>
#include <vector>

namespace pyinject::cli {

struct SplitArguments {
  std::vector<std::string> own;      // normalized: "--pid=1", "--all-cpus"
  std::vector<std::string> perf;     // unchanged and in order
  std::vector<std::string> command;  // the words after the options
  bool separator = false;            // there was a "--"
};

// OWN: the tool's options (including perf options with the same names). WITH_PERF: other options
// are for perf; false: they are errors. Throws CommandLineError.
[[nodiscard]] SplitArguments split_arguments(std::span<const std::string> words,
                                             std::span<const Option> own, bool with_perf);

}  // namespace pyinject::cli
