// Callchains of greenlets end where their C stack does: the memory below belongs to others.
#include "unit/weave/made_process.hpp"
#include "weave/frame_history.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;

class Greenlets : public MadeProcess {
 protected:
  Greenlets() { map(kGreenlet, kCodeSize, greenlet_module()); }
  // With the C functions LETTERS.
  std::string woven_native(std::string_view letters, const sample::Stack& stack,
                           sample::NativeEnd end = sample::NativeEnd::kRoot) {
    sample(100, "c");
    record(100, stack, letters, end);
    return woven().at(0);
  }
};

// Counted from the thread's root, x and y would be in the outer evaluators.
TEST_F(Greenlets, EndAtTheirRoot) {
  EXPECT_EQ(woven_native("cEcErswmcEcEc", python({"a", "xy"})), "cEyxcEar[greenlet]");
  EXPECT_EQ(summary_.python_only, 0U);
}

TEST_F(Greenlets, AreFollowedByTheirParents) {
  auto stack = python({"a", "xy"});
  const auto suspended = python({"bx"}).frames;
  const sample::Frame start{.code = sample::kGreenlet};
  stack.parents = {start, suspended[0], suspended[1], start, suspended[1]};
  EXPECT_EQ(woven_native("cEcErswmcEcEc", stack), "cEyxcEar[greenlet]xb[greenlet]b");
}

// In a switch, they may be those of another one.
TEST_F(Greenlets, HaveNoParentsDuringASwitch) {
  auto stack = python({"a"});
  stack.parents = {{.code = sample::kGreenlet}, stack.frames[0]};
  EXPECT_EQ(woven_native("vwmcErs", stack), "va[greenlet switch]");
}

TEST_F(Greenlets, EndAtTheirRootWithFramePointers) {
  EXPECT_EQ(woven_one("cEcErmcEcEc", python({"a", "xy"})), "cEyxcEar[greenlet]");
}

// The innermost one runs.
TEST_F(Greenlets, AreNotThoseThatStartedThem) {
  EXPECT_EQ(woven_native("cErswmcErswmcEc", python({"a"})), "cEar[greenlet]");
}

TEST_F(Greenlets, TheThreadItselfHasNoMark) {
  EXPECT_EQ(woven_native("cEcEc", python({"a", "xy"})), "cEyxcEac");
}

TEST_F(Greenlets, HaveAMarkWithoutPythonFunctions) {
  EXPECT_EQ(woven_native("ccrswmcEc", {}), "ccr[greenlet]");
}

// What is below the root may be no stack.
TEST_F(Greenlets, LackNothingBelowTheirRoot) {
  context_.scope = RecordingContext::Scope::kProcesses;
  EXPECT_EQ(woven_native("cErsd", python({"a"}), sample::NativeEnd::kNoRule), "cEar[greenlet]");
  EXPECT_EQ(summary_.no_information, 0U);
  EXPECT_EQ(summary_.stacks.of(perfdata::StackKind::kComplete), 1U);
}

TEST_F(Greenlets, ArePythonOnlyIfTheyDoNotFit) {
  EXPECT_EQ(woven_native("cErswmcEcEcEc", python({"a", "b", "x"})), "cxba[greenlet]");
  EXPECT_EQ(summary_.python_only, 1U);
}

// An own C stack, but the Python functions of the greenlet before, or the reverse.
TEST_F(Greenlets, ArePythonOnlyDuringASwitch) {
  EXPECT_EQ(woven_native("vwmcErs", python({"a"})), "va[greenlet switch]");
  EXPECT_EQ(summary_.python_only, 1U);
}

// The g_switch() of the one that started it is not its own.
TEST_F(Greenlets, ArePythonOnlyWhileTheyEnd) {
  EXPECT_EQ(woven_native("fmmrswmcEc", python({"a"})), "fa[greenlet switch]");
}

TEST_F(Greenlets, HaveNoFunctionsOfAnotherAtTheirEnd) {
  EXPECT_EQ(woven_native("mrswmcEc", python({"a"})), "ma[greenlet switch]");
}

// Before the callers of the function that restores the stack are there.
TEST_F(Greenlets, ArePythonOnlyWhileTheStackIsCopied) {
  EXPECT_EQ(woven_native("fmmcEc", python({"a"})), "fa[greenlet switch]");
}

TEST_F(Greenlets, HaveTheirOrderBeforeAndAfterASwitch) {
  EXPECT_EQ(woven_native("mwmcEc", python({"a"})), "mwmcEac");
}

TEST_F(Greenlets, HaveTheirOrderInOtherFunctionsOfTheModule) {
  EXPECT_EQ(woven_native("mcErs", python({"a"})), "mcEar[greenlet]");
}

TEST_F(Greenlets, ArePythonOnlyIfTheGroupsAreUnknown) {
  auto stack = python({"ab"});
  stack.ungrouped = true;
  EXPECT_EQ(woven_native("cEcErs", stack), "cba[greenlet switch]");
}

// Only the file's name tells what it is.
TEST_F(Greenlets, AreRecognizedWithoutNames) {
  map(kGreenlet, kCodeSize, "/usr/lib/greenlet/_greenlet.cpython-313-x86_64-linux-gnu.so");
  EXPECT_EQ(woven_native("cEcEmmmcEcEc", python({"a", "xy"})), "cEyxcEam[greenlet]");
}

TEST_F(Greenlets, AreNotExpectedInOtherFiles) {
  map(kGreenlet, kCodeSize, "/usr/lib/greenlets.so");
  EXPECT_EQ(woven_native("cErscEc", python({"a", "x"})), "cExrscEac");
}

class GreenletsWithTrampolines : public Greenlets {
 protected:
  GreenletsWithTrampolines() {
    context_.stacks = &history_;
    context_.open_map = [](std::uint32_t) {
      auto map = test::memory_file(fmt::format("{:x} 20 py::x:f.py\n", kArena));
      EXPECT_EQ(::lseek(map.get(), 0, SEEK_SET), 0);
      return map;
    };
    history_.name(kPid, {.number = 'a', .qualname = "a", .file = "f.py", .first_line = 10});
    history_.name(kPid, {.number = 'M', .qualname = "<module>", .file = "f.py", .first_line = 10});
  }
  // The thread ran CODE when it was attached.
  void ran(char code) {
    history_.begin(
        kPid, kPid,
        {{.activation = 16, .code = static_cast<std::uint64_t>(code), .outermost = true}}, true);
  }
  std::string woven_by_trampoline(std::string_view letters) {
    sample(100, letters);
    return woven().at(0);
  }
  FrameHistory history_;
};

TEST_F(GreenletsWithTrampolines, HaveNoFunctionsOfAnother) {
  ran('a');
  EXPECT_EQ(woven_by_trampoline("cETcErmcEc"), "cETcEr[unnamed Python functions][greenlet]");
}

TEST_F(GreenletsWithTrampolines, HaveNoFunctionsOfTheThread) {
  ran('M');
  EXPECT_EQ(woven_by_trampoline("cETcErmcEc"), "cETcEr[unnamed Python functions][greenlet]");
}

TEST_F(GreenletsWithTrampolines, TheThreadHasNoFunctionsOfAGreenlet) {
  ran('a');
  EXPECT_EQ(woven_by_trampoline("cETcEc"), "cETcEc[unnamed Python functions]");
}

TEST_F(GreenletsWithTrampolines, TheThreadHasItsOwnFunctions) {
  ran('M');
  EXPECT_EQ(woven_by_trampoline("cETcEc"), "cETcE<module>c");
}

TEST_F(GreenletsWithTrampolines, StartedSinceLackNothing) {
  ran('M');
  EXPECT_EQ(woven_by_trampoline("cETcETrmcEc"), "cETcETr[greenlet]");
}

// Half of the stack may be another greenlet's.
TEST_F(GreenletsWithTrampolines, HaveNoFunctionsWhileTheStackIsCopied) {
  EXPECT_EQ(woven_by_trampoline("fmmcETcETcEc"), "fm[greenlet switch]");
}

}  // namespace
}  // namespace pyinject::weave
