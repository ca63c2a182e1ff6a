// Python programs that are measured.
#pragma once

#include "measure.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <string>
#include <vector>

namespace pyinject::bench {

// One interpreter of each minor version, none in a chroot, those that EFFORT names.
[[nodiscard]] std::vector<test::Interpreter> interpreters(const Effort& effort);
[[nodiscard]] std::string version(const test::Interpreter& python);

enum class Kind {
  kBusy,   // every thread runs Python, as far as the GIL lets it
  kMixed,  // the main thread runs, the others wait
  kIdle,   // every thread waits
};
[[nodiscard]] std::string name(Kind kind);

// A program of THREADS threads. Its main thread looks at the clock in a loop, unless it is idle,
// and remembers the longest time between two looks.
class Watched {
 public:
  Watched(const test::Interpreter& python, Kind kind, int threads);

  [[nodiscard]] base::Pid pid() const { return process_.pid(); }
  [[nodiscard]] test::PythonProcess& process() { return process_; }
  // The longest since the last call. Not of an idle one.
  [[nodiscard]] nanoseconds gap();
  // Throws base::Error when it does not go on.
  void check();

 private:
  bool answers_;  // without waiting for the GIL behind all the others
  test::PythonProcess process_;
};

// What one does with a target, and what the target saw of it.
struct Seen {
  nanoseconds took{};
  nanoseconds gap{};
  nanoseconds untouched_gap{};  // in a window of the same length in which nothing was done
};
[[nodiscard]] Seen watch(Watched& target, const std::function<void()>& work);

// Answers commands with the speed of what it runs: "fib SECONDS", "mixed SECONDS" (rounds per
// second of CPU time), "call COUNT", "first COUNT" (ns for each call of a function, of a new
// function).
class Worker {
 public:
  explicit Worker(const test::Interpreter& python);
  [[nodiscard]] base::Pid pid() const { return process_.pid(); }
  [[nodiscard]] double ask(const std::string& command);

 private:
  test::PythonProcess process_;
};

}  // namespace pyinject::bench
