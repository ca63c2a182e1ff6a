// Gaps of a recording that its samples do not show: targets that could not run, or hid functions.
#pragma once

#include "perfdata/record.hpp"
#include "pyinject/base/pid.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::perfdata {

enum class Gap : std::uint8_t {
  kFrozen,       // the cgroup of the target was frozen at the end
  kStopped,      // job control had stopped it, likewise
  kSwitchedOff,  // the program switched the trampoline off during the recording
};
inline constexpr std::size_t kGaps = 3;

struct TargetGaps {
  struct Targets {
    std::uint64_t count = 0;
    std::vector<base::Pid> pids = {};  // of the first ones: base::kMostListedPids
    std::string cgroup = {};           // kFrozen: the directory of the first one's, printable
    bool operator==(const Targets&) const = default;
  };
  std::array<Targets, kGaps> targets{};

  [[nodiscard]] Targets& of(Gap gap) { return targets.at(static_cast<std::size_t>(gap)); }
  void add(Gap gap, base::Pid pid, std::string_view cgroup = {});
  [[nodiscard]] bool empty() const { return *this == TargetGaps{}; }
  bool operator==(const TargetGaps&) const = default;
};

// For each kind what it is, of which targets, and what helps: "pid 4711: stopped by job control
// (SIGSTOP or Ctrl-Z) at the end: it has no samples until it goes on (kill -CONT 4711)".
[[nodiscard]] std::vector<std::string> sentences(const TargetGaps& gaps);

// A line "NAME COUNT PID,PID CGROUP" for each kind, for the feature of this tool that holds the
// StackCounts; at most 1.5 KB.
[[nodiscard]] std::string to_section(const TargetGaps& gaps);

// Ignores lines that it does not know.
[[nodiscard]] TargetGaps parse_target_gaps(Bytes section);

}  // namespace pyinject::perfdata
