// Every interpreter is detected correctly, however it was started.
#include "base/file.hpp"
#include "integration/detection.hpp"
#include "procfs/maps.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "support/asleep.hpp"
#include "support/covering.hpp"
#include "support/own_tmp.hpp"
#include "support/snapshot.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include <unistd.h>

namespace pyinject::test {
namespace {

namespace fs = std::filesystem;
using python::TrampolineState;
using testing::IsEmpty;

class PythonDetectorTest : public DetectionTest {
 protected:
  Attach attach_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonDetectorTest);
COVER(PythonDetectorTest, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, PythonDetectorTest,
                         testing::ValuesIn(interpreters({.both_ways = true})), InterpreterName{});

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream{line};
  return {std::istream_iterator<std::string>{stream}, {}};
}

TEST_P(PythonDetectorTest, FindsTheVersionThatTheInterpreterPrints) {
  PythonProcess python{GetParam(),
                       "import platform, sys\n"
                       "print('ready', flush=True)\n"
                       "print(sys.hexversion, platform.python_version(), flush=True)\n"
                       "sys.stdin.read()\n"};
  const auto printed = words(python.read_line());
  wait_until_asleep(python.pid());
  const auto before = take_snapshot(python.pid());
  const auto target = attach_.detect(python.pid());
  EXPECT_THAT(differences(before, take_snapshot(python.pid())), IsEmpty());
  EXPECT_EQ(target.version, python::version_from_hex(std::stoull(printed.at(0))));
  EXPECT_EQ(python::to_string(target.version), printed.at(1));
  EXPECT_EQ(target.state, TrampolineState::kOff);
  EXPECT_EQ(target.id, procfs::read_process_id(python.pid()));
  EXPECT_EQ(target.inner_pid, python.pid());
  EXPECT_EQ(target.map_path, fmt::format("/tmp/perf-{}.map", python.pid().value()));
  EXPECT_EQ(target.foreign_namespace, !GetParam().root.empty());
  EXPECT_THAT(target.warnings, IsEmpty());
}

TEST_P(PythonDetectorTest, FindsTheAddressesThatTheInterpreterItselfUses) {
  PythonProcess python{GetParam(),
                       "import ctypes, sys\n"
                       "api = ctypes.pythonapi\n"
                       "libc = ctypes.CDLL(None)\n"
                       "def at(function): return ctypes.cast(function, ctypes.c_void_p).value\n"
                       "main = api.PyInterpreterState_Main\n"
                       "main.restype = ctypes.c_void_p\n"
                       "print('ready', flush=True)\n"
                       "print(ctypes.addressof(ctypes.c_char.in_dll(api, '_PyRuntime')), main(),\n"
                       "      at(api.PyRun_SimpleString), at(api.Py_AddPendingCall),\n"
                       "      at(api.PyGILState_Ensure), at(api.PyGILState_Release),\n"
                       "      at(libc.sem_post), at(api._PyEval_EvalFrameDefault), flush=True)\n"
                       "sys.stdin.read()\n"};
  std::vector<std::uint64_t> printed;
  for (const auto& word : words(python.read_line())) {
    printed.push_back(std::stoull(word));
  }
  const auto target = attach_.detect(python.pid());
  const auto& at = target.addresses;
  EXPECT_THAT((std::vector<std::uint64_t>{at.runtime.value(), at.main_interpreter.value(),
                                          at.run_simple_string.value(), at.add_pending_call.value(),
                                          at.gilstate_ensure.value(), at.gilstate_release.value(),
                                          at.sem_post.value()}),
              testing::ElementsAreArray(printed.begin(), printed.begin() + 7));
  EXPECT_LE(target.text_begin.value(), printed.at(7));
  EXPECT_GT(target.text_end.value(), printed.at(7));
}

TEST_P(PythonDetectorTest, SaysWhetherTheBuildKeepsFramePointers) {
  PythonProcess python{GetParam(),
                       "import sys, sysconfig\n"
                       "print('ready', flush=True)\n"
                       "flags = sysconfig.get_config_var('CFLAGS') or ''\n"
                       "print('-fno-omit-frame-pointer' in flags, flush=True)\n"
                       "sys.stdin.read()\n"};
  EXPECT_EQ(attach_.detect(python.pid()).frame_pointers, python.read_line() == "True");
}

TEST_P(PythonDetectorTest, FindsItInAVirtualEnvironment) {
  const SeenDirectory directory{GetParam()};
  auto interpreter = GetParam();
  const auto script = base::read_file(interpreter.command.back()).value_or("");
  if (!script.starts_with("#!") || script.find("--argv0") == std::string::npos) {
    auto command = interpreter.command;
    command.insert(command.end(), {"-m", "venv", "--without-pip", directory.seen("env")});
    ASSERT_EQ(run(command).status.code, 0);
    interpreter = with_executable(interpreter, directory.seen("env/bin/python"));
  }  // otherwise: the scripts that start a loader already run it in an environment
  PythonProcess python{interpreter,
                       "import sys\n"
                       "print('ready', flush=True)\n"
                       "print(sys.prefix != sys.base_prefix, flush=True)\n"
                       "sys.stdin.read()\n"};
  EXPECT_EQ(python.read_line(), "True");
  EXPECT_EQ(attach_.detect(python.pid()).version.minor, GetParam().minor);
}

TEST_P(PythonDetectorTest, FindsItWhenItsFileIsDeleted) {
  const SeenDirectory directory{GetParam()};
  PythonProcess python{with_copy(GetParam(), directory, "python-copy"), kIdle};
  const auto mapped = attach_.detect(python.pid());
  EXPECT_THAT(mapped.interpreter, testing::EndsWith("python-copy"));
  fs::remove(directory.here("python-copy"));
  const auto deleted = Attach{}.detect(python.pid());
  EXPECT_EQ(deleted.version, mapped.version);
  EXPECT_EQ(deleted.addresses.runtime, mapped.addresses.runtime);
  EXPECT_EQ(deleted.addresses.mailbox, mapped.addresses.mailbox);
  EXPECT_EQ(deleted.frame_pointers, mapped.frame_pointers);
  EXPECT_THAT(deleted.interpreter, testing::HasSubstr("python-copy"));
}

TEST_P(PythonDetectorTest, AnswersTheSameAgain) {
  const PythonProcess first{GetParam(), kIdle};
  const PythonProcess second{GetParam(), kIdle};
  const auto before = attach_.detect(first.pid());
  EXPECT_EQ(attach_.detect(second.pid()).version, before.version);
  EXPECT_EQ(attach_.detect(first.pid()).addresses.runtime, before.addresses.runtime);
}

TEST_P(PythonDetectorTest, SaysWhichFileMayHoldAnInterpreter) {
  const PythonProcess python{GetParam(), kIdle};
  const auto target = attach_.detect(python.pid());
  const auto maps = procfs::read_maps(python.pid());
  ASSERT_TRUE(maps);
  const auto detector = python::make_detector();
  const auto asked = [&](base::Pid pid, const procfs::Mapping& mapping) {
    return detector->may_hold_interpreter(pid,
                                          {.device_major = mapping.device_major,
                                           .device_minor = mapping.device_minor,
                                           .inode = mapping.inode,
                                           .generation = 0},
                                          mapping.path, base::Cancellation::never());
  };
  std::set<std::string> others;
  for (const auto& mapping : *maps) {
    if (!mapping.executable || mapping.inode == 0) {
      continue;
    }
    // Known by now: the file need not be mapped by any process.
    for (const auto pid : {python.pid(), base::Pid{}}) {
      EXPECT_EQ(asked(pid, mapping), mapping.path == target.interpreter) << mapping.path;
    }
    others.insert(mapping.path);
  }
  EXPECT_GT(others.size(), 1U);  // at least the C library
  procfs::Mapping unknown;
  unknown.inode = ~std::uint64_t{0};
  unknown.path = "/none";
  EXPECT_TRUE(asked(python.pid(), unknown));
}

TEST_P(PythonDetectorTest, SeesThatItIsOnByItself) {
  PythonOptions options;
  options.interpreter_args = {"-X", "perf"};
  const PythonProcess flag{GetParam(), kIdle, options};
  EXPECT_EQ(attach_.detect(flag.pid()).state, TrampolineState::kOnByItself);
  const PythonProcess call{GetParam(), std::string{"import sys\n"
                                                   "sys.activate_stack_trampoline('perf')\n"} +
                                           kIdle};
  EXPECT_EQ(attach_.detect(call.pid()).state, TrampolineState::kOnByItself);
  const auto variable = with_variable(GetParam(), "PYTHONPERFSUPPORT=1");
  const PythonProcess environment{variable, kIdle};
  EXPECT_EQ(attach_.detect(environment.pid()).state, TrampolineState::kOnByItself);
  for (const auto pid : {flag.pid(), call.pid(), environment.pid()}) {
    fs::remove(map_file(pid));
  }
}

// A minimal container: its own pid namespace, mount namespace and /tmp.
TEST_P(PythonDetectorTest, SeesThatItLivesInOtherNamespaces) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "namespaces need root";
  }
  const auto with_tmp = wrapped(GetParam(), unshared_with_tmpfs(GetParam().root, "rw"));
  PythonProcess python{wrapped(with_tmp, {"unshare", "--pid", "--fork", "--kill-child"}),
                       "import os, sys\n"
                       "print('ready', flush=True)\n"
                       "print(os.getpid(), flush=True)\n"
                       "sys.stdin.read()\n"};
  const auto inner = python.read_line();
  const auto children =
      base::read_file(fmt::format("/proc/{0}/task/{0}/children", python.pid().value()));
  ASSERT_TRUE(children.has_value());
  const base::Pid pid{static_cast<pid_t>(std::stol(*children))};
  ASSERT_NE(std::to_string(pid.value()), inner);
  const auto target = attach_.detect(pid);
  EXPECT_EQ(std::to_string(target.inner_pid.value()), inner);
  EXPECT_EQ(target.map_path, "/tmp/perf-" + inner + ".map");
  EXPECT_TRUE(target.foreign_namespace);
  const auto activation = attach_.activate(pid);
  EXPECT_TRUE(activation.map.valid());
  attach_.deactivate(pid);
}

TEST(PythonDetectorKindsTest, AreTheseHere) {
  if (interpreters().empty()) {
    GTEST_SKIP() << "no interpreter found";
  }
  for (const auto& interpreter : interpreters({.both_ways = true})) {
    const auto file = interpreter_file(interpreter);
    ASSERT_FALSE(file.empty());
    const auto header = base::read_file(file, 20).value_or("");
    ASSERT_EQ(header.substr(0, 4),
              "\x7f"
              "ELF")
        << file;
    RecordProperty(interpreter.name,
                   fmt::format("{}, {}", is_library(file) ? "shared library" : "static executable",
                               header.at(16) == 2 ? "not PIE" : "position independent"));
  }
}

}  // namespace
}  // namespace pyinject::test
