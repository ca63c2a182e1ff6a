// One life of a torture program: start, work, checks, exit.
#pragma once

#include "stress/kinds.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::test {

// A directory visible to the target, with the page that both share and the library that it may
// load.
class SharedDirectory {
 public:
  explicit SharedDirectory(const Interpreter& interpreter);
  ~SharedDirectory();
  SharedDirectory(const SharedDirectory&) = delete;
  SharedDirectory& operator=(const SharedDirectory&) = delete;

  [[nodiscard]] const std::string& seen_by_target() const { return inside_; }
  // All rounds of its threads so far.
  [[nodiscard]] std::uint64_t rounds() const;
  void stop();

 private:
  static constexpr std::size_t kBytes = 4096;
  std::filesystem::path outside_;
  std::string inside_;
  std::uint64_t* words_ = nullptr;
};

class StressedTarget {
 public:
  // Throws base::Error if it does not start. OPTIONS are the interpreter's, e.g. -X perf.
  StressedTarget(const Interpreter& interpreter, const Kind& kind,
                 const std::vector<std::string>& options = {});
  ~StressedTarget();
  StressedTarget(const StressedTarget&) = delete;
  StressedTarget& operator=(const StressedTarget&) = delete;

  [[nodiscard]] base::Pid pid() const { return child_.pid(); }
  // Starts its work: the answer to `ready`.
  void go(const std::string& line = "") { child_.write(line + "\n"); }
  [[nodiscard]] std::uint64_t rounds() const { return directory_.rounds(); }
  // Waits until it has done more than ROUNDS; false: not in time, or it has exited.
  [[nodiscard]] bool works_on(std::uint64_t rounds);
  // Its last line; nullopt: not in time. It then waits so that it can be checked.
  [[nodiscard]] std::optional<std::string> verdict();
  // Lets it exit. nullopt: not in time.
  [[nodiscard]] std::optional<ExitStatus> end();
  [[nodiscard]] bool alive() { return child_.running(); }
  void stop() { directory_.stop(); }
  // A description of its state for messages, if it hangs or has died.
  [[nodiscard]] std::string whereabouts();
  [[nodiscard]] const std::string& errors() const { return child_.err(); }
  // The path of its map for this machine.
  [[nodiscard]] std::string map_path() const;

 private:
  std::string root_;
  SharedDirectory directory_;
  ChildProcess child_;
};

}  // namespace pyinject::test
