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

// Puts an evaluator in another library in place of its own at the first line that it reads, and
// prints where that is; takes it out at the second. It is never called: from the start on the
// program calls C functions only.
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

// INTERPRETER with LIBRARY, of whose soname it then loads no other. Not so whatever starts it.
[[nodiscard]] Interpreter with_preloaded(const Interpreter& interpreter,
                                         const std::string& library);

// The reason's name and the message of what a detector says that runs as user UID; "ready" for a
// target that is.
[[nodiscard]] std::string detect_as(uid_t uid, base::Pid pid);

// Fails unless PID is refused with REASON, and found and remedy hold PARTS.
void expect_refused(const python::Detection& detection, python::Reason reason,
                    std::initializer_list<std::string> parts);
// The same for an idle process, in which nothing may have changed.
void expect_refused_untouched(base::Pid pid, python::Reason reason,
                              std::initializer_list<std::string> parts);
// What a detector says of PID; empty when it is ready.
[[nodiscard]] python::Refused refused(base::Pid pid);
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
