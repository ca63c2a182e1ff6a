// Shared by the tests of detection.
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

// Waits in a system call until its stdin is closed.
inline constexpr auto kIdle = "import sys\nprint('ready', flush=True)\nsys.stdin.read()\n";

// At the first line on stdin, replaces the evaluator with one in another library and prints its
// address; at the second line, restores it. It is never called: once `ready` is printed, the
// program only calls C functions.
inline constexpr auto kForeignEvaluator =
    "import ctypes, os\n"
    "api = ctypes.pythonapi\n"
    "main = api.PyInterpreterState_Main\n"
    "main.restype = ctypes.c_void_p\n"
    "put = api._PyInterpreterState_SetEvalFrameFunc\n"
    "put.argtypes = [ctypes.c_void_p, ctypes.c_void_p]\n"
    "put.restype = None\n"
    "here = main()\n"
    "foreign = ctypes.cast(ctypes.CDLL(None).sem_post, ctypes.c_void_p)\n"
    "own = ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p)\n"
    "write, read, exit = os.write, os.read, os._exit\n"
    "write(1, b'ready\\n')\n"
    "read(0, 100)\n"
    "put(here, foreign)\n"
    "write(1, b'foreign %d\\n' % foreign.value)\n"
    "read(0, 100)\n"
    "put(here, own)\n"
    "write(1, b'own\\n')\n"
    "read(0, 100)\n"
    "exit(0)\n";

// A directory that is visible to the interpreter: inside its root, if it is chrooted.
class SeenDirectory {
 public:
  explicit SeenDirectory(const Interpreter& interpreter);
  ~SeenDirectory();
  SeenDirectory(const SeenDirectory&) = delete;
  SeenDirectory& operator=(const SeenDirectory&) = delete;

  [[nodiscard]] std::string here(std::string_view name) const;  // path for this test
  [[nodiscard]] std::string seen(std::string_view name) const;  // path for the interpreter
  void write(std::string_view name, std::string_view content) const;

 private:
  std::string root_;
  std::string path_;
};

// INTERPRETER with WRAPPER, which runs its arguments, in front of its command.
[[nodiscard]] Interpreter wrapped(Interpreter interpreter, std::vector<std::string> wrapper);
// INTERPRETER with a variable in its environment, even if it is chrooted.
[[nodiscard]] Interpreter with_variable(const Interpreter& interpreter,
                                        const std::string& variable);

// The file that contains CPython's code, as detected in an idle process.
[[nodiscard]] std::string interpreter_file(const Interpreter& interpreter);
[[nodiscard]] bool is_library(const std::string& interpreter_file);
// INTERPRETER with PROGRAM, a file in a SeenDirectory, in place of its executable; loader and root
// stay.
[[nodiscard]] Interpreter with_executable(const Interpreter& interpreter,
                                          const std::string& program);
// The same with a copy of interpreter_file(): NAME in FOLDER.
[[nodiscard]] Interpreter with_copy(const Interpreter& interpreter, const SeenDirectory& directory,
                                    const std::string& name);

// INTERPRETER with LIBRARY preloaded, in place of any library with the same soname. The programs
// that start the interpreter are not affected.
[[nodiscard]] Interpreter with_preloaded(const Interpreter& interpreter,
                                         const std::string& library);

// The reason's name and the message of a detector that runs as user UID; "ready": no refusal.
[[nodiscard]] std::string detect_as(uid_t uid, base::Pid pid);

// Fails unless PID is refused with REASON, and the finding and remedy contain PARTS.
void expect_refused(const python::Detection& detection, python::Reason reason,
                    std::initializer_list<std::string> parts);
// The same for an idle process, which must be unchanged.
void expect_refused_untouched(base::Pid pid, python::Reason reason,
                              std::initializer_list<std::string> parts);
// The refusal of PID by a detector; empty if the target is ready.
[[nodiscard]] python::Refused refused(base::Pid pid);
// Fails unless PID is ready.
void expect_ready(base::Pid pid);

// Runs on every interpreter that was found.
class DetectionTest : public testing::TestWithParam<Interpreter> {
 protected:
  [[nodiscard]] bool since(int minor) const { return GetParam().minor >= minor; }
  // The path of PID's map file for this test.
  [[nodiscard]] static std::string map_file(base::Pid pid) {
    return GetParam().root + "/tmp/perf-" + std::to_string(pid.value()) + ".map";
  }
};

}  // namespace pyinject::test
