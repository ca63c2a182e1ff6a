// A running Python program.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/patience.hpp"

#include <csignal>
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
  // must flush. Otherwise throws base::Error with its output.
  PythonProcess(const Interpreter& interpreter, const std::string& program,
                const PythonOptions& options = {});

  // Kills it and removes its perf map, if any.
  ~PythonProcess();
  PythonProcess(const PythonProcess&) = delete;
  PythonProcess& operator=(const PythonProcess&) = delete;

  // The pid of the interpreter itself: the scripts for chrooted ones exec it.
  [[nodiscard]] base::Pid pid() const { return child_.pid(); }
  [[nodiscard]] ChildProcess& child() { return child_; }

  // Throws base::Error with its stderr if no line arrives in time.
  [[nodiscard]] std::string read_line(std::chrono::nanoseconds span = kPatience);
  void send_line(const std::string& line);
  // Stops it until resume(): what examines a recording of it gets the processors.
  void pause() { child_.signal(SIGSTOP); }
  void resume() { child_.signal(SIGCONT); }
  // A GoogleTest failure with its stderr if it has exited.
  void expect_alive();
  // Sends SIGTERM and waits. Throws base::Error if it does not end.
  ExitStatus terminate(std::chrono::nanoseconds span = kPatience);

 private:
  [[nodiscard]] std::string last_words();

  std::string name_;
  std::string root_;
  ChildProcess child_;
};

}  // namespace pyinject::test
