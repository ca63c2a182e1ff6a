// tests/targets/served_tree.py, a program that runs while it is recorded, and what a recording of
// it has to say.
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

// Functions from the outermost to the innermost, by their qualified names.
using Chain = std::vector<std::string>;

// The chains in which nearly all time is spent, from <module>, which was entered before the attach.
[[nodiscard]] const std::set<Chain>& served_chains();

// What a process of that interpreter left in /tmp.
void remove_maps(const Interpreter& python, const std::string& pid);

class ServedTree {
 public:
  explicit ServedTree(const Interpreter& python, const PythonOptions& options = {});
  ~ServedTree();  // ends it and removes its map files
  ServedTree(const ServedTree&) = delete;
  ServedTree& operator=(const ServedTree&) = delete;

  [[nodiscard]] std::string pid() const;
  [[nodiscard]] PythonProcess& process() { return *process_; }
  // Waits until it has served that many more requests, again and again until it has had a
  // processor for that long; a failure of the test when any result since its start was wrong.
  // Samples are asked for by time: how many requests they take is the machine's.
  void serve(int requests, std::chrono::nanoseconds at_least = {});
  // Lets it come to its end by itself.
  [[nodiscard]] ExitStatus finish();

 private:
  Interpreter python_;
  std::optional<PythonProcess> process_;
};

// One sample as `perf script` shows it.
struct ScriptSample {
  std::string pid;
  bool user = false;
  Chain python;  // the functions of served_tree.py
};

// Of all samples, or throws base::Error when PERF, run with OPTIONS, cannot read DATA.
[[nodiscard]] std::vector<ScriptSample> read_samples(const std::string& perf,
                                                     const std::string& data,
                                                     const ChildOptions& options = {});

// What part of the samples in user space (of one process, if named) is as it should be, in percent.
struct Named {
  std::size_t samples = 0;  // in user space
  double whole = 0;         // exactly one of served_chains()
  double innermost = 0;     // the last function of one of them is the innermost one
  double any = 0;           // any function of the program
};
[[nodiscard]] Named count_named(const std::vector<ScriptSample>& samples,
                                const std::string& pid = {});

// The tool with these arguments, to its end.
[[nodiscard]] RunResult run_tool(const std::vector<std::string>& arguments,
                                 const ChildOptions& options = {});
// "off", "on by us", "on by itself": `status --json` of that process.
[[nodiscard]] std::string trampoline_of(const std::string& pid);

// `record` with a command that says when the recording runs, and ends when it is told to.
class RunningRecord {
 public:
  // ARGUMENTS of record: targets, output, perf's options. PROGRAM: the tool, or what runs it.
  // Throws base::Error when it does not begin to record.
  explicit RunningRecord(const std::vector<std::string>& arguments,
                         const std::vector<std::string>& program = {tool()},
                         const ChildOptions& options = {});

  [[nodiscard]] ChildProcess& child() { return child_; }
  // Ends the command, with status 0. Throws base::Error when the tool does not end then.
  [[nodiscard]] ExitStatus finish();
  // The same with another status.
  [[nodiscard]] ExitStatus finish(int status);
  // Waits for its end without ending the command.
  [[nodiscard]] ExitStatus wait();

 private:
  ChildProcess child_;
};

}  // namespace pyinject::test
