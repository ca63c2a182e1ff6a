// tests/targets/call_tree_server.py, a program that tells its own call trees, and how much of a
// recording of it agrees.
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

// Everything that a thread calls: a node is a function as often as there are ways to it.
class CallTree {
 public:
  static constexpr int kRoot = -1;

  void add(int node, int parent, const std::string& function);
  // CHAIN, from the outermost to the innermost function, is the whole way to one of the nodes.
  [[nodiscard]] bool has(const std::vector<std::string>& chain) const;
  [[nodiscard]] std::size_t size() const { return children_.size(); }

 private:
  std::map<std::pair<int, std::string>, int> children_;
};

using ThreadTrees = std::map<std::string, CallTree>;  // by thread number

class CallTreeServer {
 public:
  // ARGUMENTS of the program: `deep`, `long` or none.
  explicit CallTreeServer(const Interpreter& python, const PythonOptions& options = {});
  ~CallTreeServer();  // ends it and removes map files, those of its children, too
  CallTreeServer(const CallTreeServer&) = delete;
  CallTreeServer& operator=(const CallTreeServer&) = delete;

  [[nodiscard]] std::string pid() const;
  // Also of the children that fork() made: they are in the tree of the main thread.
  [[nodiscard]] const ThreadTrees& trees() const { return trees_; }
  // Waits for that many more rounds of the main thread, again and again until the process has had a
  // processor for that long; a failure of the test when a result was wrong.
  void work(int rounds, std::chrono::nanoseconds at_least = {});
  // Waits for the end of a child that makes so many rounds; its number.
  std::string fork(int rounds);
  // Two more functions are between <module> and the rounds.
  void nest();
  [[nodiscard]] ExitStatus finish();

 private:
  [[nodiscard]] std::string ask(const std::string& command);

  Interpreter python_;
  std::optional<PythonProcess> process_;
  std::vector<std::string> children_;
  ThreadTrees trees_;
};

// How many samples in user space, and how many of them with exactly a right chain.
struct Agreement {
  std::size_t samples = 0;
  std::size_t right = 0;

  [[nodiscard]] double percent() const {
    return samples == 0 ? 0 : 100.0 * static_cast<double>(right) / static_cast<double>(samples);
  }
};

struct Agreements {
  Agreement all;
  Agreement leaves;  // right: and the innermost function is one that only works
  std::map<std::string, Agreement> threads;
  std::size_t others = 0;  // samples of threads that have no tree
  std::string wrong;       // the most frequent wrong chains, a line each
};

// As perf stamps its samples with -k mono, for its option --time.
[[nodiscard]] std::string monotonic_now();

// For messages.
[[nodiscard]] std::string describe(const Agreements& agreements);

// As PERF shows DATA with OPTIONS of perf script. Throws base::Error when PERF cannot read it.
[[nodiscard]] Agreements compare(const std::string& perf, const std::string& data,
                                 const ThreadTrees& trees,
                                 const std::vector<std::string>& options = {});

// Of the samples in which OUTER calls INNER with no Python function between them ("right": those
// with a frame of a file whose name has OBJECT in it between them).
[[nodiscard]] Agreement frames_between(const std::string& perf, const std::string& data,
                                       const std::string& outer, const std::string& inner,
                                       const std::string& object);

}  // namespace pyinject::test
