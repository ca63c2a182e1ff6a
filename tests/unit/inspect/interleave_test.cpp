#include "inspect/stopped/interleave.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pyinject::inspect {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using weave::AddressKind;

// Innermost first. "eval": the evaluator; "tramp": a trampoline.
NativeStack c_functions(const std::vector<std::string>& names, const std::string& missing = {}) {
  NativeStack stack{.functions = {}, .missing = missing};
  for (const auto& name : names) {
    stack.functions.push_back({.kind = name == "eval"    ? AddressKind::kEvaluator
                                       : name == "tramp" ? AddressKind::kTrampoline
                                                         : AddressKind::kOther,
                               .name = name,
                               .file = "f"});
  }
  return stack;
}

// Innermost first; "+f" is the outermost function of its activation.
ThreadSnapshot python_functions(const std::vector<std::string>& names) {
  ThreadSnapshot thread;
  for (const auto& name : names) {
    const bool outermost = name.starts_with('+');
    thread.frames.push_back(
        {.function = outermost ? name.substr(1) : name, .file = "f", .outermost = outermost});
  }
  return thread;
}

std::vector<std::string> names(const ThreadSnapshot& thread) {
  std::vector<std::string> all;
  for (const auto& frame : thread.frames) {
    all.push_back((frame.native ? "c:" : "") + frame.function);
  }
  return all;
}

TEST(Interleave, PutsPythonFunctionsInPlaceOfTheEvaluator) {
  auto thread = python_functions({"compare", "+called", "sorts", "+main"});
  interleave(thread, c_functions({"read", "eval", "qsort", "eval", "start"}));
  EXPECT_THAT(names(thread),
              ElementsAre("c:read", "compare", "called", "c:qsort", "sorts", "main", "c:start"));
  EXPECT_THAT(thread.native_missing, IsEmpty());
}

TEST(Interleave, HidesTrampolines) {
  auto thread = python_functions({"+inner", "+outer"});
  interleave(thread, c_functions({"read", "eval", "tramp", "call", "eval", "tramp", "start"}));
  EXPECT_THAT(names(thread), ElementsAre("c:read", "inner", "c:call", "outer", "c:start"));
}

TEST(Interleave, KeepsAnEvaluatorThatRunsNoFunctionYet) {
  auto thread = python_functions({"+main"});
  interleave(thread, c_functions({"eval", "call", "eval", "start"}));
  EXPECT_THAT(names(thread), ElementsAre("c:eval", "c:call", "main", "c:start"));
}

TEST(Interleave, ShowsCFunctionsAlone) {
  ThreadSnapshot thread;
  interleave(thread, c_functions({"poll", "start"}));
  EXPECT_THAT(names(thread), ElementsAre("c:poll", "c:start"));
}

TEST(Interleave, KeepsThePythonFunctionsOfMissingCFunctions) {
  auto thread = python_functions({"a", "+b", "c", "+d"});
  interleave(thread, c_functions({"read", "eval", "call"}, "too large"));
  EXPECT_THAT(names(thread), ElementsAre("c:read", "a", "b", "c:call", "c", "d"));
  EXPECT_EQ(thread.native_missing, "too large");
}

TEST(Interleave, KeepsTheInnerActivationsIfPythonFunctionsAreMissing) {
  auto thread = python_functions({"a", "+b"});
  thread.complete = false;
  interleave(thread, c_functions({"read", "eval", "call", "eval", "start"}));
  EXPECT_THAT(names(thread), ElementsAre("c:read", "a", "b", "c:call", "c:eval", "c:start"));
}

TEST(Interleave, LeavesStacksAloneThatDoNotBelongTogether) {
  auto thread = python_functions({"+a", "+b"});
  interleave(thread, c_functions({"eval", "start"}));
  EXPECT_THAT(names(thread), ElementsAre("a", "b"));
  EXPECT_EQ(thread.native_missing, "they do not fit the Python functions");
}

}  // namespace
}  // namespace pyinject::inspect
