// `dump --native` of real processes: C functions between Python functions.
#include "e2e/bpf_recording.hpp"
#include "support/asleep.hpp"
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using nlohmann::json;
using std::string_literals::operator""s;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr auto kSorting = R"(
import ctypes, os, threading
libc = ctypes.CDLL(None)
number = ctypes.POINTER(ctypes.c_int)
array = (ctypes.c_int * 5)(5, 1, 7, 33, 99)
def compare(x, y):
    os.read(0, 1)
    return 0
callback = ctypes.CFUNCTYPE(ctypes.c_int, number, number)(compare)
def sorts():
    libc.qsort(array, 5, 4, callback)
def calls():
    sorts()
def waits():
    threading.Event().wait()
threading.Thread(target=waits, daemon=True).start()
print('ready', flush=True)
calls()
)";

// PREFIX: a command that starts the tool.
json frames_of(const std::vector<std::string>& options, base::Pid pid,
               std::vector<std::string> prefix = {}) {
  auto& argv = prefix;
  for (const auto& word : {tool(), "dump"s, "--json"s, "-p"s, std::to_string(pid.value())}) {
    argv.push_back(word);
  }
  argv.insert(argv.end(), options.begin(), options.end());
  const auto result = run(argv);
  EXPECT_EQ(result.status, ExitStatus{}) << result.err;
  auto frames = json::array();
  const auto all = json::parse(result.out);
  for (const auto& thread : all.at("processes").at(0).at("threads")) {
    EXPECT_TRUE(thread.at("native_missing").is_null()) << thread.dump(1);
    frames.push_back(thread.at("frames"));
  }
  return frames;
}

// The functions of one KIND in FRAMES.
json of_kind(const json& frames, const std::string& kind) {
  auto result = json::array();
  std::ranges::copy_if(frames, std::back_inserter(result),
                       [&kind](const json& frame) { return frame.at("kind") == kind; });
  return result;
}

std::size_t index_of(const json& frames, const std::string& kind, const std::string& part) {
  std::size_t index = 0;
  for (; index < frames.size(); ++index) {
    const auto& frame = frames.at(index);
    if (frame.at("kind") == kind && frame.at("function").is_string() &&
        frame.at("function").get<std::string>().find(part) != std::string::npos) {
      break;
    }
  }
  return index;
}

class DumpOfNative : public testing::TestWithParam<Interpreter> {
 protected:
  // PYTHON runs kSorting.
  static void expect_interleaved(const PythonProcess& python) {
    wait_until_all_asleep(python.pid());
    const auto plain = frames_of({}, python.pid());
    const auto all = frames_of({"--native"}, python.pid());
    ASSERT_EQ(all.size(), plain.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(of_kind(all.at(i), "python"), plain.at(i));
      EXPECT_EQ(index_of(all.at(i), "native", "_PyEval_EvalFrameDefault"), all.at(i).size())
          << all.at(i).dump(1);
    }
    const auto& frames = all.at(0);
    const auto read = index_of(frames, "native", "read");
    const auto compare = index_of(frames, "python", "compare");
    const auto sort = index_of(frames, "native", "sort");
    const auto sorts = index_of(frames, "python", "sorts");
    const auto calls = index_of(frames, "python", "calls");
    EXPECT_LT(read, compare) << frames.dump(1);
    EXPECT_LT(compare, sort) << frames.dump(1);
    EXPECT_LT(sort, sorts) << frames.dump(1);
    ASSERT_LT(calls, frames.size()) << frames.dump(1);
    EXPECT_THAT(frames.at(sort).at("file").get<std::string>(), HasSubstr("libc"));
    EXPECT_EQ(frames.back().at("kind"), "native");
  }
};

TEST_P(DumpOfNative, ShowsCBetweenPython) {
  const PythonProcess python{GetParam(), kSorting};
  expect_interleaved(python);
  const auto text =
      run({tool(), "dump", "--native", "-p", std::to_string(python.pid().value())}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("  [libc"), HasSubstr("\n    compare  <string>:7\n")));
  if (bpf_engine_lacks().empty()) {
    EXPECT_THAT(text, Not(HasSubstr("\n  stopped for ")));
  }
}

TEST_P(DumpOfNative, HasTheSameFunctionsWithAndWithoutAStop) {
  const PythonProcess python{GetParam(), kSorting};
  wait_until_all_asleep(python.pid());
  const auto unstopped = frames_of({"--native"}, python.pid());
  EXPECT_EQ(unstopped, frames_of({"--native", "--stop"}, python.pid()));
  EXPECT_EQ(unstopped,
            frames_of({"--native"}, python.pid(), {"setpriv", "--bounding-set=-bpf,-perfmon"}));
}

TEST_P(DumpOfNative, StopsAProcessOfWhichAThreadRuns) {
  const PythonProcess python{GetParam(), R"(
def works():
    while True:
        pass
print('ready', flush=True)
works()
)"};
  const auto text =
      run({tool(), "dump", "--native", "-p", std::to_string(python.pid().value())}).out;
  EXPECT_THAT(text, AllOf(HasSubstr("\n  stopped for "), HasSubstr("\n    works  <string>:"),
                          // A compiler may inline one of them.
                          AnyOf(HasSubstr("Py_RunMain"), HasSubstr("Py_BytesMain"))));
}

TEST_P(DumpOfNative, ShowsCBetweenPythonThatRunsThroughTrampolines) {
  const PythonProcess python{
      GetParam(), kSorting, {.interpreter_args = {"-X", "perf"}, .args = {}, .child = {}}};
  expect_interleaved(python);
}

INSTANTIATE_TEST_SUITE_P(Pythons, DumpOfNative,
                         testing::ValuesIn(interpreters({.only_read = true,
                                                         .trampoline = true,
                                                         .module = "ctypes",
                                                         .each_version = Prefer::kLoader})),
                         InterpreterName{});

}  // namespace
}  // namespace pyinject::test
