#include "report/collections.hpp"

#include "report/marks.hpp"
#include "report/names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::report {
namespace {

using testing::ElementsAre;

// A callchain of a program with the trampoline, and what becomes of it.
class Collections : public testing::Test {
 protected:
  Collections() {
    profile_.objects = {{.path = "/opt/app"}, {.path = "/lib/other.so"}, {.path = ""}};
    profile_.events = {{.name = "cpu-clock", .unit = Unit::kNanoseconds}};
    profile_.threads = {{.pid = 5, .tid = 5}};
  }
  std::uint32_t child(std::uint32_t caller, std::uint32_t frame) {
    auto& nodes = profile_.nodes;
    const auto known = std::ranges::find_if(nodes.begin() + 1, nodes.end(), [&](const Node& node) {
      return node.caller == caller && node.frame == frame;
    });
    if (known == nodes.end()) {
      nodes.push_back({.caller = caller, .frame = frame});
      return static_cast<std::uint32_t>(nodes.size() - 1);
    }
    return static_cast<std::uint32_t>(known - nodes.begin());
  }
  // Outermost first. "py:NAME": a Python function; "[k]NAME": of the kernel; "other:NAME": of
  // another library; else of the program with the interpreter.
  void add(const std::vector<std::string>& names) {
    std::uint32_t node = 0;
    for (auto name : names) {
      Function function{.name = {}};
      const auto take = [&](const std::string& prefix) {
        const bool has = name.starts_with(prefix);
        name = name.substr(has ? prefix.size() : 0);
        return has;
      };
      function.kind = take("py:") ? Kind::kPython : take("[k]") ? Kind::kKernel : Kind::kNative;
      function.object = function.kind == Kind::kPython ? 2 : take("other:") ? 1 : 0;
      function.file = function.kind == Kind::kPython && name != kGarbageCollector ? "/a.py" : "";
      function.name = name;
      profile_.functions.push_back(function);
      profile_.frames.push_back(
          {.function = static_cast<std::uint32_t>(profile_.functions.size() - 1)});
      node = child(node, static_cast<std::uint32_t>(profile_.frames.size() - 1));
    }
    profile_.samples.push_back({.stack = node});
  }
  // Of the last sample; outermost first.
  std::vector<std::string> stack() {
    add_collections(profile_, [this](auto caller, auto frame) { return child(caller, frame); });
    std::vector<std::string> names;
    for (const auto frame : frames_of(profile_, profile_.samples.back().stack)) {
      names.push_back(name_of(profile_, function_of(profile_, frame)));
    }
    std::ranges::reverse(names);
    return names;
  }
  Profile profile_;
};

TEST_F(Collections, AreInsideTheFunctionInWhichTheyStart) {
  add({"_PyEval_EvalFrameDefault", "py:f", "_PyEval_EvalFrameDefault", "_Py_RunGC",
       "gc_collect_main.constprop.0", "visit_decref", "[k]page_fault"});
  EXPECT_THAT(stack(), ElementsAre("_PyEval_EvalFrameDefault", "f", "[gc]",
                                   "_PyEval_EvalFrameDefault", "_Py_RunGC",
                                   "gc_collect_main.constprop.0", "visit_decref", "page_fault"));
  const auto gc = std::ranges::find_if(profile_.functions, is_garbage_collector);
  ASSERT_NE(gc, profile_.functions.end());
  EXPECT_EQ(gc->object, 2U) << "in no file, as the other Python functions";
}

TEST_F(Collections, AreInsideAFinalizerThatTheyCall) {
  add({"_PyEval_EvalFrameDefault", "py:f", "_PyEval_EvalFrameDefault", "gc_collect_main",
       "_PyEval_EvalFrameDefault", "py:__del__", "_PyEval_EvalFrameDefault"});
  EXPECT_THAT(stack(), ElementsAre("_PyEval_EvalFrameDefault", "f", "_PyEval_EvalFrameDefault",
                                   "gc_collect_main", "_PyEval_EvalFrameDefault", "__del__", "[gc]",
                                   "_PyEval_EvalFrameDefault"));
}

TEST_F(Collections, HaveOneFrameInAllStacks) {
  const std::vector<std::string> collects{"_PyEval_EvalFrameDefault", "py:f",
                                          "_PyEval_EvalFrameDefault", "gc_collect_main"};
  add(collects);
  profile_.samples.push_back(profile_.samples.front());
  add(collects);
  (void)stack();
  EXPECT_EQ(std::ranges::count_if(profile_.functions, is_garbage_collector), 1);
  EXPECT_EQ(profile_.samples[0].stack, profile_.samples[1].stack);
  EXPECT_EQ(stack().size(), 5U) << "not added again";
}

TEST_F(Collections, AreNotClaimedWithoutTheNamesOfTheInterpreter) {
  for (const std::string function :
       {"", "other:gc_collect_main", "[k]gc_collect_main", "my_gc_collect"}) {
    add({"_PyEval_EvalFrameDefault", "py:f", "_PyEval_EvalFrameDefault", function, "visit"});
    EXPECT_EQ(stack().size(), 5U) << function;
  }
  add({"gc_collect_main", "visit"});
  EXPECT_EQ(stack().size(), 2U) << "no Python function";
}

TEST_F(Collections, LeaveThoseOfTheBpfEngineAsTheyAre) {
  add({"_PyEval_EvalFrameDefault", "py:f", "py:[gc]", "_PyEval_EvalFrameDefault",
       "gc_collect_main"});
  EXPECT_EQ(stack().size(), 5U);
  add({"_PyEval_EvalFrameDefault", "py:f", "_PyEval_EvalFrameDefault", "gc_collect_main"});
  EXPECT_EQ(stack().size(), 5U);
  EXPECT_EQ(std::ranges::count_if(profile_.functions, is_garbage_collector), 1);
}

}  // namespace
}  // namespace pyinject::report
