#include "support/python_process.hpp"

#include "pyinject/base/error.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>

#include <unistd.h>

namespace pyinject::test {

namespace {

using base::Deadline;

std::vector<std::string> command(const Interpreter& interpreter, const std::string& program,
                                 const PythonOptions& options) {
  auto argv = interpreter.command;
  argv.insert(argv.end(), options.interpreter_args.begin(), options.interpreter_args.end());
  argv.insert(argv.end(), {"-c", program});
  argv.insert(argv.end(), options.args.begin(), options.args.end());
  return argv;
}

ChildOptions in_root(ChildOptions options, const std::string& root) {
  options.root = root;
  return options;
}

}  // namespace

PythonProcess::PythonProcess(const Interpreter& interpreter, const std::string& program,
                             const PythonOptions& options)
    : name_{interpreter.name},
      root_{interpreter.root},
      child_{command(interpreter, program, options), in_root(options.child, interpreter.root)} {
  const auto line = child_.read_line(Deadline::after(options.deadline));
  if (line != "ready") {
    throw base::Error{fmt::format("{} did not say `ready` but \"{}\"; {}", name_,
                                  line.value_or("nothing"), last_words())};
  }
}

// Removes the maps: pids are reused soon, and CPython appends to a map that exists.
PythonProcess::~PythonProcess() {
  const auto map = fmt::format("/tmp/perf-{}.map", pid().value());
  for (const auto& path : {root_ + map, root_ + map + ".old", map}) {
    ::unlink(path.c_str());
  }
}

std::string PythonProcess::read_line(std::chrono::nanoseconds span) {
  if (auto line = child_.read_line(Deadline::after(span))) {
    return *line;
  }
  throw base::Error{fmt::format("{} wrote no line in time; {}", name_, last_words())};
}

void PythonProcess::send_line(const std::string& line) { child_.write(line + "\n"); }

void PythonProcess::expect_alive() {
  if (!child_.running()) {
    ADD_FAILURE() << name_ << " has ended; " << last_words();
  }
}

ExitStatus PythonProcess::terminate(std::chrono::nanoseconds span) {
  child_.signal(SIGTERM);
  if (const auto status = child_.wait(Deadline::after(span))) {
    return *status;
  }
  throw base::Error{fmt::format("{} does not end by SIGTERM; {}", name_, last_words())};
}

std::string PythonProcess::last_words() {
  const auto status = child_.wait(Deadline::after(std::chrono::nanoseconds{0}));
  const auto state =
      status ? fmt::format("ended with status {}, signal {}", status->code, status->signal)
             : std::string{"is running"};
  return fmt::format("pid {} {}; stderr:\n{}", pid().value(), state, child_.err());
}

}  // namespace pyinject::test
