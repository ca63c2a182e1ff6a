// One life of a torture program: started, worked, looked at, ended.
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

// A folder that the target sees, too, with the page shared with it and the library it may load.
class SharedFolder {
 public:
  explicit SharedFolder(const Interpreter& interpreter);
  ~SharedFolder();
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;

  [[nodiscard]] const std::string& seen_by_target() const { return inside_; }
  // All rounds that its threads did so far.
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
  // Throws base::Error when it does not come to its start.
  // OPTIONS are the interpreter's, e.g. -X perf.
  StressedTarget(const Interpreter& interpreter, const Kind& kind,
                 const std::vector<std::string>& options = {});
  ~StressedTarget();
  StressedTarget(const StressedTarget&) = delete;
  StressedTarget& operator=(const StressedTarget&) = delete;

  [[nodiscard]] base::Pid pid() const { return child_.pid(); }
  // Lets it begin: its answer to `ready`.
  void go(const std::string& line = "") { child_.write(line + "\n"); }
  [[nodiscard]] std::uint64_t rounds() const { return folder_.rounds(); }
  // Waits until it has done more than ROUNDS; false when it has not in time, or has ended.
  [[nodiscard]] bool works_on(std::uint64_t rounds);
  // Its last line; nullopt when there is none in time. It waits then, to be looked at.
  [[nodiscard]] std::optional<std::string> verdict();
  // Lets it end. nullopt when it does not in time.
  [[nodiscard]] std::optional<ExitStatus> end();
  [[nodiscard]] bool alive() { return child_.running(); }
  void stop() { folder_.stop(); }
  // What is to be said of one that hangs or has died.
  [[nodiscard]] std::string whereabouts();
  [[nodiscard]] const std::string& errors() const { return child_.err(); }
  // What this machine sees of the map that it writes.
  [[nodiscard]] std::string map_path() const;

 private:
  std::string root_;
  SharedFolder folder_;
  ChildProcess child_;
};

}  // namespace pyinject::test
