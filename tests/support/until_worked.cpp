#include "support/until_worked.hpp"

#include <fmt/format.h>

#include <unistd.h>

namespace pyinject::test {

std::vector<std::string> until_worked(base::Pid pid, std::chrono::milliseconds time) {
  return until_worked(pid, time, ":");
}

// Reads utime and stime from /proc/PID/stat, after the name, which may contain anything. Polls: the
// kernel offers no event for that.
std::vector<std::string> until_worked(base::Pid pid, std::chrono::milliseconds time,
                                      const std::string& then) {
  constexpr auto kUntil = R"(
worked() {{
  read -r stat 2> /dev/null < /proc/{0}/stat || return 1
  set -- ${{stat##*) }}
  now=$((${{12}} + ${{13}}))
}}
worked && end=$((now + {1})) && while worked && [ $now -lt $end ]; do sleep 0.01; done
{2})";
  const auto ticks = time.count() * ::sysconf(_SC_CLK_TCK) / 1000;
  return {"sh", "-c", fmt::format(kUntil, pid.value(), ticks, then)};
}

}  // namespace pyinject::test
