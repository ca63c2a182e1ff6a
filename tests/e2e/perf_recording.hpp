// A recording of a Python program whose call tree is known, read by our scripts in both ways of
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

// `perf record` of tests/targets/call_tree.py, and what perf and our scripts say about it.
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
  // As perf itself counts them.
  [[nodiscard]] long samples() const;
  // perf script -s .../NAME.py -i FILE -- ARGUMENTS
  [[nodiscard]] RunResult script(const std::string& name, const Arguments& arguments) const;
  // PERF_EXEC_PATH=... perf script report NAME -i FILE ARGUMENTS
  [[nodiscard]] RunResult report(const std::string& name, const Arguments& arguments) const;
  // The file in the names of the program's functions.
  [[nodiscard]] static std::string program();

 private:
  [[nodiscard]] RunResult run_perf(
      const Arguments& arguments, const std::map<std::string, std::string>& environment = {}) const;

  TempDir folder_;
  std::string perf_;
  std::string data_;
  RunResult result_;
  // perf reads names from /tmp/perf-PID.map, which others may tidy away while we read.
  std::string map_path_;
  std::string map_;
};

}  // namespace pyinject::test
