// A program that checks its own results and reports on request whether they were right.
#pragma once

#include "support/attach.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"
#include "support/snapshot.hpp"

#include <memory>
#include <string>

namespace pyinject::test {

// What its main thread does.
enum class Doing {
  kComputes,
  kWaitsForLock,
  kReads,
  kHoldsGil,  // in C code, until a line arrives on stdin
};

class CheckedTarget {
 public:
  CheckedTarget(const Interpreter& interpreter, Doing doing);

  [[nodiscard]] base::Pid pid() const { return process_.pid(); }
  [[nodiscard]] std::string pid_text() const { return std::to_string(pid().value()); }
  [[nodiscard]] bool chrooted() const { return !root_.empty(); }
  // The path of its perf map as seen by this process.
  [[nodiscard]] std::string map_path() const;
  // Activates and deactivates it.
  void activate_once();
  [[nodiscard]] bool is_off() {
    return attach_.detect(pid()).state == python::TrampolineState::kOff;
  }
  // A GoogleTest failure unless it runs, is untraced, computes correctly and is off.
  void expect_unharmed_and_off();
  // A GoogleTest failure unless it can be switched on and off again.
  void expect_usable();

 private:
  Doing doing_;
  std::string root_;
  PythonProcess process_;
  Attach attach_;
  Snapshot before_;
};

}  // namespace pyinject::test
