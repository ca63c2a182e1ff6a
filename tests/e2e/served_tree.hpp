// tests/targets/served_tree.py, a program that runs while it is recorded, and the result of
// recording it.
#pragma once

#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace pyinject::test {

// Functions by qualified name, outermost first.
using Chain = std::vector<std::string>;

// The chains that take nearly all time, from <module>, which was entered before the attach.
[[nodiscard]] const std::set<Chain>& served_chains();
// Whether it is the beginning of one of these, or all of it.
[[nodiscard]] bool begins_served(const Chain& chain);

// Removes the map files that a process of that interpreter left in /tmp.
void remove_maps(const Interpreter& python, const std::string& pid);

// It works only while serve() waits for it, and otherwise leaves the processors to the other tests.
// For engines that change nothing in it, so that it does not matter where they meet it.
[[nodiscard]] PythonOptions on_request();

class ServedTree {
 public:
  explicit ServedTree(const Interpreter& python, const PythonOptions& options = {});
  ~ServedTree();  // kills it and removes its map files
  ServedTree(const ServedTree&) = delete;
  ServedTree& operator=(const ServedTree&) = delete;

  [[nodiscard]] std::string pid() const;
  [[nodiscard]] PythonProcess& process() { return *process_; }
  // Waits until it has served that many more requests, repeatedly until it has used that much CPU
  // time. A test failure if any result since its start was wrong. The time ensures enough samples:
  // how many requests it takes depends on the machine.
  void serve(int requests, std::chrono::nanoseconds at_least = {});
  // Lets it end normally.
  [[nodiscard]] ExitStatus finish();

 private:
  Interpreter python_;
  std::optional<PythonProcess> process_;
};

// A sample as `perf script` prints it.
struct ScriptSample {
  std::string pid;
  bool user = false;
  Chain python;  // the functions of served_tree.py
};

// All samples. Throws base::Error if PERF, run with OPTIONS, cannot read DATA.
[[nodiscard]] std::vector<ScriptSample> read_samples(const std::string& perf,
                                                     const std::string& data,
                                                     const ChildOptions& options = {});

// The percentages of correct samples in user space (of one process, if specified).
struct Named {
  std::size_t samples = 0;  // in user space
  double begun = 0;         // the beginning of one of served_chains(), or all of it
  double whole = 0;         // exactly one of served_chains()
  double innermost = 0;     // the innermost function is the last one of such a chain
  double any = 0;           // any function of the program
};
[[nodiscard]] Named count_named(const std::vector<ScriptSample>& samples,
                                const std::string& pid = {});

// Why that many: the request in progress at an attach of the trampoline has no complete chains, and
// is some hundredths of a short recording. How many stacks end in a function that only works is the
// machine's: what runs between them once per request is not in its caches (measured by the program
// itself: 0.8 % with 10 times the turns; 0.2 to 7 % have been recorded). A loss of one of the four
// chains would take 25 %.
constexpr double kBegun = 95;
constexpr double kInLeaves = 80;

// The stacks are right, and reach the innermost functions.
void expect_right(const Named& named, const std::string& messages = {});

// Runs the tool with these arguments until it exits.
[[nodiscard]] RunResult run_tool(const std::vector<std::string>& arguments,
                                 const ChildOptions& options = {});
// The trampoline's state in `status --json` for that process: "off", "on by us", "on by itself".
[[nodiscard]] std::string trampoline_of(const std::string& pid);

// `record` with a command that reports when the recording runs and ends on request.
class RunningRecord {
 public:
  // ARGUMENTS of record: targets, output, perf's options. PROGRAM: the tool, or a command that runs
  // it. Throws base::Error if the recording does not start.
  explicit RunningRecord(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& program = {tool()},
                         const ChildOptions& options = {});

  [[nodiscard]] ChildProcess& child() { return child_; }
  // Ends the command with status 0. Throws base::Error if the tool does not end then.
  [[nodiscard]] ExitStatus finish();
  // The same with status STATUS.
  [[nodiscard]] ExitStatus finish(int status);
  // Waits for its exit without ending the command.
  [[nodiscard]] ExitStatus wait();

 private:
  ChildProcess child_;
};

}  // namespace pyinject::test
