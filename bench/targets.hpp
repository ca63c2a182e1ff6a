// The Python programs to measure.
#pragma once

#include "measure.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <string>
#include <vector>

namespace pyinject::bench {

// One interpreter per minor version, none in a chroot, limited to those that EFFORT names.
[[nodiscard]] std::vector<test::Interpreter> interpreters(const Effort& effort);
[[nodiscard]] std::string version(const test::Interpreter& python);

enum class Kind {
  kBusy,   // every thread runs Python, as far as the GIL permits
  kMixed,  // the main thread runs, the others wait
  kIdle,   // every thread waits
};
[[nodiscard]] std::string name(Kind kind);

// A program of THREADS threads. Unless it is idle, its main thread reads the clock in a loop and
// records the longest time between two readings.
class Watched {
 public:
  Watched(const test::Interpreter& python, Kind kind, int threads);

  [[nodiscard]] base::Pid pid() const { return process_.pid(); }
  [[nodiscard]] test::PythonProcess& process() { return process_; }
  // The longest gap since the last call. Not for idle programs.
  [[nodiscard]] nanoseconds gap();
  // Throws base::Error if the program no longer works.
  void check();

 private:
  bool answers_;  // without waiting for the GIL behind all other threads
  test::PythonProcess process_;
};

// The duration of an operation on a target, and the gaps that the target saw.
struct Seen {
  nanoseconds took{};
  nanoseconds gap{};
  nanoseconds untouched_gap{};  // in a window of the same length without an operation
};
[[nodiscard]] Seen watch(Watched& target, const std::function<void()>& work);

// Runs commands and answers with their speed: "fib SECONDS", "mixed SECONDS" (rounds per second of
// CPU time), "call COUNT", "first COUNT" (ns per call of one function, or of a new function each).
class Worker {
 public:
  explicit Worker(const test::Interpreter& python);
  [[nodiscard]] base::Pid pid() const { return process_.pid(); }
  [[nodiscard]] double ask(const std::string& command);

 private:
  test::PythonProcess process_;
};

}  // namespace pyinject::bench
