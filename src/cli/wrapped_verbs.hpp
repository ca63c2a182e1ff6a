// perf's verbs that are run as perf has them, with the trampolines of the targets on. Pure.
#pragma once

#include "pyinject/record/wrapped_perf.hpp"

#include <span>
#include <string>
#include <string_view>

namespace pyinject::cli {

[[nodiscard]] bool is_wrapped_verb(std::string_view word);

struct WrappedVerb {
  bool help = false;
  session::WrapOptions options;
};

// WORDS begin with the verb. Ours are --perf, --strict and --lenient; -p is read and left to perf
// as well; all others are perf's, whose own parser knows them. Throws CommandLineError.
[[nodiscard]] WrappedVerb parse_wrapped_verb(std::span<const std::string> words);

}  // namespace pyinject::cli
