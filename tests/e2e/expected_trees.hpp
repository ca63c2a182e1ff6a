// tests/targets/call_tree_server.py, a program that reports its own call trees, and how well a
// recording of it agrees with them.
#pragma once

#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::test {

// All calls of a thread: a function has one node per path that leads to it.
class CallTree {
 public:
  static constexpr int kRoot = -1;

  void add(int node, int parent, const std::string& function);
  // Whether CHAIN, outermost function first, is the complete path to a node.
  [[nodiscard]] bool has(const std::vector<std::string>& chain) const;
  [[nodiscard]] std::size_t size() const { return children_.size(); }

 private:
  std::map<std::pair<int, std::string>, int> children_;
};

using ThreadTrees = std::map<std::string, CallTree>;  // by tid

class CallTreeServer {
 public:
  // ARGUMENTS of the program: `deep`, `long` or none.
  explicit CallTreeServer(const Interpreter& python, const PythonOptions& options = {});
  ~CallTreeServer();  // kills it and removes its map files and those of its children
  CallTreeServer(const CallTreeServer&) = delete;
  CallTreeServer& operator=(const CallTreeServer&) = delete;

  [[nodiscard]] std::string pid() const;
  // Includes children made by fork(): they share the tree of the main thread.
  [[nodiscard]] const ThreadTrees& trees() const { return trees_; }
  // Waits for that many more rounds of the main thread, repeatedly until the process has used that
  // much CPU time. A test failure if a result was wrong.
  void work(int rounds, std::chrono::nanoseconds at_least = {});
  // Waits for the exit of a child that makes that many rounds; returns its pid.
  std::string fork(int rounds);
  // As those of PythonProcess.
  void pause() { process_->pause(); }
  void resume() { process_->resume(); }
  // Adds two functions between <module> and the rounds.
  void nest();
  [[nodiscard]] ExitStatus finish();

 private:
  [[nodiscard]] std::string ask(const std::string& command);

  Interpreter python_;
  std::optional<PythonProcess> process_;
  std::vector<std::string> children_;
  ThreadTrees trees_;
};

// The number of samples in user space, and how many of them have exactly a right chain.
struct Agreement {
  std::size_t samples = 0;
  std::size_t right = 0;

  [[nodiscard]] double percent() const {
    return samples == 0 ? 0 : 100.0 * static_cast<double>(right) / static_cast<double>(samples);
  }
};

struct Agreements {
  Agreement all;
  Agreement leaves;  // right: the innermost function is also one that only works
  std::map<std::string, Agreement> threads;
  std::size_t others = 0;  // samples of threads that have no tree
  std::string wrong;       // the most frequent wrong chains, one per line
};

// The current time as perf stamps samples with -k mono, for perf's option --time.
[[nodiscard]] std::string monotonic_now();

// For messages.
[[nodiscard]] std::string describe(const Agreements& agreements);

// Compares DATA, as PERF script with OPTIONS prints it, with TREES. Throws base::Error if PERF
// cannot read it.
[[nodiscard]] Agreements compare(const std::string& perf, const std::string& data,
                                 const ThreadTrees& trees,
                                 const std::vector<std::string>& options = {});

// The samples in which OUTER calls INNER with no Python function in between. "right": those with a
// frame in between from a file with OBJECT in its name.
[[nodiscard]] Agreement frames_between(const std::string& perf, const std::string& data,
                                       const std::string& outer, const std::string& inner,
                                       const std::string& object);

}  // namespace pyinject::test
