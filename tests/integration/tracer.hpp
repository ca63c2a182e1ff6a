// Programs that trace a target, so that no other process can.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "support/child_process.hpp"
#include "support/patience.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::test {

// A program that attaches to a process, reports it (`ready`, or strace's message), and stays.
class Tracer {
 public:
  explicit Tracer(const std::vector<std::string>& argv) : child_{argv} {
    std::optional<std::string> line;
    do {
      line = child_.read_line(base::Deadline::after(kPatience));
      said_ += line.value_or("") + "\n";
    } while (line && *line != "ready" && line->find(" attached") == std::string::npos);
    attached_ = line.has_value();
    said_ += child_.err();
  }
  [[nodiscard]] bool attached() const { return attached_; }
  [[nodiscard]] const std::string& said() const { return said_; }
  [[nodiscard]] base::Pid pid() const { return child_.pid(); }

 private:
  ChildProcess child_;
  std::string said_;
  bool attached_ = false;
};

// They end immediately if there is no such program.
[[nodiscard]] inline std::vector<std::string> strace_of(base::Pid pid) {
  return {"sh", "-c", "command -v strace || exit 9; exec strace -p \"$1\" 2>&1", "sh",
          std::to_string(pid.value())};
}
[[nodiscard]] inline std::vector<std::string> gdb_of(base::Pid pid) {
  return {"sh", "-c",
          "command -v gdb || exit 9; exec gdb -nx -q -iex 'set auto-load off' -iex "
          "'set debuginfod enabled off' -ex 'shell echo ready' -p \"$1\"",
          "sh", std::to_string(pid.value())};
}

}  // namespace pyinject::test
