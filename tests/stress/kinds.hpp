// Describes the programs of tests/targets/stress.
#pragma once

#include "pyinject/python/reason.hpp"

#include <iosfwd>
#include <optional>
#include <string_view>
#include <vector>

namespace pyinject::test {

// What a program needs besides `go` and `stop`.
enum class Care {
  kOrdinary,
  kExecutes,       // it keeps exec'ing
  kMainGone,       // /proc/PID shows neither its mappings nor its descriptors
  kStops,          // job control stops it: it may be in state T
  kDaemonThreads,  // without the tool, CPython may crash when such a program exits
  kEndsItself,     // it gets a time to live instead of the command to stop
};

struct Kind {
  std::string_view name;    // also of its file
  std::string_view module;  // required; otherwise skipped
  Care care = Care::kOrdinary;
  // Acceptable reasons for refusing an injection or a recording.
  std::vector<python::Reason> may;
  // The reason with which each must be refused on versions below 3.MUST_BELOW.
  std::optional<python::Reason> must;
  int must_below = 99;
  // It runs little Python code: a round takes a second.
  bool slow = false;

  [[nodiscard]] std::optional<python::Reason> must_for(int minor) const {
    return minor < must_below ? must : std::nullopt;
  }
};

[[nodiscard]] const std::vector<Kind>& kinds();

// GoogleTest prints a kind with this function, whose name it prescribes.
// NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Kind& kind, std::ostream* stream);

}  // namespace pyinject::test
