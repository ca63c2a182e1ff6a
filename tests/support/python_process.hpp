// A running Python program.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/patience.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pyinject::test {

struct PythonOptions {
  std::vector<std::string> interpreter_args;  // before -c, e.g. {"-X", "perf"}
  std::vector<std::string> args;              // sys.argv[1:]
  ChildOptions child;
  std::chrono::nanoseconds deadline = kPatience;  // for `ready`
};

class PythonProcess {
 public:
  // Runs PROGRAM by -c (so it may be chrooted) and waits until it prints the line `ready`, which it
  // must flush. Throws base::Error with what it wrote when it does not.
  PythonProcess(const Interpreter& interpreter, const std::string& program,
                const PythonOptions& options = {});

  // Kills it, and removes the perf map that it may have written.
  ~PythonProcess();
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  // The interpreter itself: the scripts that stand for chrooted ones exec it.
  [[nodiscard]] base::Pid pid() const { return child_.pid(); }
  [[nodiscard]] ChildProcess& child() { return child_; }

  // Throws base::Error with what it wrote to stderr when there is no line in time.
  [[nodiscard]] std::string read_line(std::chrono::nanoseconds span = kPatience);
  void send_line(const std::string& line);
  // A GoogleTest failure with its stderr when it has ended.
  void expect_alive();
  // SIGTERM, and wait. Throws base::Error when it does not end.
  ExitStatus terminate(std::chrono::nanoseconds span = kPatience);

 private:
  [[nodiscard]] std::string last_words();

  std::string name_;
  std::string root_;
  ChildProcess child_;
};

}  // namespace pyinject::test
