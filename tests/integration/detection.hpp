// What the tests of detection share.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/python/detector.hpp"
#include "support/attach.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace pyinject::test {

// Waits in a system call until its input ends.
inline constexpr auto kIdle = "import sys\nprint('ready', flush=True)\nsys.stdin.read()\n";

// A folder that the interpreter sees: below its root, if it is chrooted.
class SeenFolder {
 public:
  explicit SeenFolder(const Interpreter& interpreter);
  ~SeenFolder();
  SeenFolder(const SeenFolder&) = delete;
  SeenFolder& operator=(const SeenFolder&) = delete;

  [[nodiscard]] std::string here(std::string_view name) const;  // as this test names it
  [[nodiscard]] std::string seen(std::string_view name) const;  // as the interpreter names it
  void write(std::string_view name, std::string_view content) const;

 private:
  std::string root_;
  std::string path_;
};

// INTERPRETER with WRAPPER, which runs the command that follows it, before its command.
[[nodiscard]] Interpreter wrapped(Interpreter interpreter, std::vector<std::string> wrapper);
// INTERPRETER with variables in its environment, also when it is chrooted.
[[nodiscard]] Interpreter with_variable(const Interpreter& interpreter,
                                        const std::string& variable);

// The file with CPython's code in it, by a detection of an idle process.
[[nodiscard]] std::string interpreter_file(const Interpreter& interpreter);
[[nodiscard]] bool is_library(const std::string& interpreter_file);
// INTERPRETER running PROGRAM, which FOLDER holds, instead of its executable, with all that
// surrounds it: the loader, the root.
[[nodiscard]] Interpreter with_executable(const Interpreter& interpreter,
                                          const std::string& program);
// The same with a copy of interpreter_file(): NAME in FOLDER.
[[nodiscard]] Interpreter with_copy(const Interpreter& interpreter, const SeenFolder& folder,
                                    const std::string& name);

// The reason's name and the message of what a detector says that runs as user UID; "ready" for a
// target that is.
[[nodiscard]] std::string detect_as(uid_t uid, base::Pid pid);

// Fails unless PID is refused with REASON, and found and remedy hold PARTS.
void expect_refused(const python::Detection& detection, python::Reason reason,
                    std::initializer_list<std::string> parts);
// The same for an idle process, in which nothing may have changed.
void expect_refused_untouched(base::Pid pid, python::Reason reason,
                              std::initializer_list<std::string> parts);
// Fails unless PID is ready.
void expect_ready(base::Pid pid);

// Runs on every interpreter that was found.
class DetectionTest : public testing::TestWithParam<Interpreter> {
 protected:
  [[nodiscard]] bool since(int minor) const { return GetParam().minor >= minor; }
  // The map file of PID, as this test names it.
  [[nodiscard]] static std::string map_file(base::Pid pid) {
    return GetParam().root + "/tmp/perf-" + std::to_string(pid.value()) + ".map";
  }
};

}  // namespace pyinject::test
