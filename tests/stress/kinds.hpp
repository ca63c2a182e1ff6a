// The programs of tests/targets/stress, as data.
#pragma once

#include "pyinject/python/reason.hpp"

#include <iosfwd>
#include <optional>
#include <string_view>
#include <vector>

namespace pyinject::test {

// What a life of the program needs besides `go` and `stop`.
enum class Care {
  kOrdinary,
  kExecutes,       // it is another program image all the time
  kMainGone,       // /proc/PID knows neither mappings nor descriptors of it
  kStops,          // job control stops it: it may be found in state T
  kDaemonThreads,  // without the tool CPython may crash at the exit of such a program
  kEndsItself,     // it is given a time to live instead of the command to stop
};

struct Kind {
  std::string_view name;    // of its file, too
  std::string_view module;  // without which it is skipped
  Care care = Care::kOrdinary;
  // Reasons for which an injection, or a recording, may be refused: no error of the tool.
  std::vector<python::Reason> may;
  // For which each must be refused, on versions below 3.MUST_BELOW.
  std::optional<python::Reason> must;
  int must_below = 99;
  // It hardly runs Python code: a round takes a second.
  bool slow = false;

  [[nodiscard]] std::optional<python::Reason> must_for(int minor) const {
    return minor < must_below ? must : std::nullopt;
  }
};

[[nodiscard]] const std::vector<Kind>& kinds();

// What GoogleTest prints of it, under the name that it looks for.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Kind& kind, std::ostream* stream);

}  // namespace pyinject::test
