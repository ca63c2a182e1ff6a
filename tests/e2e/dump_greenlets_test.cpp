// `dump` lists suspended greenlets with the functions that the program itself sees in them.
#include "support/child_process.hpp"
#include "support/interpreters.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// In two threads, with functions below C functions, in a generator, and of a class of its own. Some
// have not started, some have ended, and one runs.
constexpr auto kGreenlets = R"(
import sys, threading, greenlet, json
class Own(greenlet.greenlet):
    pass
def inner(depth):
    if depth:
        return inner(depth - 1)
    greenlet.getcurrent().parent.switch()
def by_key(value):
    greenlet.getcurrent().parent.switch()
def generated():
    inner(1)
    yield
def root_inner(): inner(3)
def root_sorted(): sorted([2, 1], key=by_key)
def root_generator(): next(generated())
def root_runs():
    ready.wait()
    print("ready", flush=True)
    print(json.dumps([told(g) for g in suspended]), flush=True)
    sys.stdin.readline()
def told(g):
    frames, frame = [], g.gr_frame
    while frame:
        frames.append({"kind": "python", "function": frame.f_code.co_qualname, "file": frame.f_code.co_filename, "line": frame.f_lineno})
        frame = frame.f_back
    name = "Own" if type(g) is Own else "greenlet.greenlet"
    return {"type": name, "tid": tids[g], "frames": frames}
tids = {greenlet.getcurrent(): threading.get_native_id()}
suspended, ready, end = [], threading.Event(), threading.Event()
def make(count):
    for i in range(count):
        suspended.append((Own if i % 2 else greenlet.greenlet)([root_inner, root_sorted, root_generator][i % 3]))
        tids[suspended[-1]] = threading.get_native_id()
        suspended[-1].switch()
def in_thread():
    make(6)
    ready.set()
    end.wait()
threading.Thread(target=in_thread, daemon=True).start()
ready.wait()
make(int(sys.argv[1]))
others = [greenlet.greenlet(root_inner), greenlet.greenlet(len)]
others[1].switch(())
suspended.append(greenlet.getcurrent())
greenlet.greenlet(root_runs).switch()
)";

class DumpGreenlets : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    python_ = find_interpreter({.minor = GetParam(), .module = "greenlet"});
    if (!python_) {
      GTEST_SKIP() << "no CPython 3." << GetParam() << " with greenlet (scripts/pythons)";
    }
  }
  [[nodiscard]] const Interpreter& python() const { return *python_; }

 private:
  std::optional<Interpreter> python_;
};

RunResult dump_of(const PythonProcess& target, const std::vector<std::string>& options) {
  std::vector<std::string> argv{tool(), "dump", "-p", std::to_string(target.pid().value())};
  argv.insert(argv.end(), options.begin(), options.end());
  return run(argv);
}

TEST_P(DumpGreenlets, AreThoseOfTheProgram) {
  PythonProcess target{python(), kGreenlets, {.interpreter_args = {}, .args = {"30"}, .child = {}}};
  auto told = json::parse(target.read_line()).get<std::vector<json>>();
  ASSERT_EQ(told.size(), 37U);
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--json"}, std::vector<std::string>{"--json", "--stop"}}) {
    const auto process = json::parse(dump_of(target, options).out).at("processes").at(0);
    EXPECT_EQ(process.at("all_greenlets"), true);
    std::vector<json> found;
    for (const auto& greenlet : process.at("greenlets")) {
      EXPECT_EQ(greenlet.at("certain"), true);
      found.push_back({{"type", greenlet.at("type")},
                       {"tid", greenlet.at("tid")},
                       {"frames", greenlet.at("frames")}});
    }
    std::ranges::sort(told);
    std::ranges::sort(found);
    EXPECT_EQ(found, told);
  }
  const auto text = dump_of(target, {}).out;
  EXPECT_THAT(text, HasSubstr("\n  37 greenlets are suspended\n"));
  EXPECT_THAT(text, HasSubstr("\n    6 greenlets (Own)\n      by_key  <string>:"));
  target.send_line("end");
}

TEST_P(DumpGreenlets, MayBeMany) {
  PythonProcess target{
      python(), kGreenlets, {.interpreter_args = {}, .args = {"1000"}, .child = {}}};
  const auto process = json::parse(dump_of(target, {"--json"}).out).at("processes").at(0);
  EXPECT_EQ(process.at("all_greenlets"), true);
  EXPECT_EQ(process.at("greenlets").size(), 1007U);
  target.send_line("end");
}

INSTANTIATE_TEST_SUITE_P(Pythons, DumpGreenlets, testing::Values(13, 14, 15),
                         [](const testing::TestParamInfo<int>& each) {
                           return fmt::format("py3_{}", each.param);
                         });

}  // namespace
}  // namespace pyinject::test
