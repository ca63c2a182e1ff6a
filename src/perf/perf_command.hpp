// The command line that starts `perf record`.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/perf/perf_options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::perf {

struct RecordCommand {
  std::string perf;                        // path of the executable
  bool own_recorder = false;               // it is this tool (recorder/recorder.hpp)
  int control_fd = -1;                     // perf reads commands here
  int ack_fd = -1;                         // and writes acknowledgements here
  std::vector<std::string> own = {};       // chosen by this tool, e.g. {"--call-graph", "fp"}
  PerfOptions options = {};                // given by the user
  std::vector<base::Pid> pids = {};        // empty: the whole system
  std::optional<std::string> cgroup = {};  // restricts the whole system to this cgroup
};

// Events are initially disabled (-D -1) until "enable" arrives on the control descriptor.
[[nodiscard]] std::vector<std::string> record_argv(const RecordCommand& command);

}  // namespace pyinject::perf
