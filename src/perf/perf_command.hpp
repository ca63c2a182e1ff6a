// The command line of `perf record` as this tool starts it.
#pragma once

#include "pyinject/base/pid.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::perf {

struct RecordCommand {
  std::string perf;                        // path of the executable
  int control_fd = -1;                     // perf reads commands here
  int ack_fd = -1;                         // and answers here
  std::vector<std::string> own = {};       // our choice, e.g. {"--call-graph", "fp"}
  std::vector<std::string> options = {};   // the user's, unchanged and in order
  std::vector<base::Pid> pids = {};        // empty: the whole system
  std::optional<std::string> cgroup = {};  // of it only this control group
};

// Events are disabled at first (-D -1); they wait for "enable" on the control descriptor.
[[nodiscard]] std::vector<std::string> record_argv(const RecordCommand& command);

}  // namespace pyinject::perf
