// A recording of a Python program with a known call tree, read by our scripts in both ways of
// running them.
#pragma once

#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <map>
#include <string>
#include <vector>

namespace pyinject::test {

// `perf record` of tests/targets/call_tree.py, and the output of perf and our scripts for it.
class PerfRecording {
 public:
  using Arguments = std::vector<std::string>;

  // SECONDS of CPU time; CALL_GRAPH is the value of perf's option.
  PerfRecording(std::string perf, const Interpreter& python, const std::string& call_graph,
                const std::string& seconds);
  ~PerfRecording();
  PerfRecording(const PerfRecording&) = delete;
  PerfRecording& operator=(const PerfRecording&) = delete;

  [[nodiscard]] const RunResult& result() const { return result_; }
  // perf's own count.
  [[nodiscard]] long samples() const;
  // perf script -s .../NAME.py -i FILE -- ARGUMENTS
  [[nodiscard]] RunResult script(const std::string& name, const Arguments& arguments) const;
  // PERF_EXEC_PATH=... perf script report NAME -i FILE ARGUMENTS
  [[nodiscard]] RunResult report(const std::string& name, const Arguments& arguments) const;
  // The file name in the names of the program's functions.
  [[nodiscard]] static std::string program();

 private:
  [[nodiscard]] RunResult run_perf(
      const Arguments& arguments, const std::map<std::string, std::string>& environment = {}) const;

  TempDir directory_;
  std::string perf_;
  std::string data_;
  RunResult result_;
  // perf reads names from /tmp/perf-PID.map, which other programs may remove in the meantime.
  std::string map_path_;
  std::string map_;
};

}  // namespace pyinject::test
