// The positions of Python frames in the callchains of samples, and their other marks.
#include "unit/weave/made_process.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;

using WholeStacks = MadeProcess;

TEST_F(WholeStacks, GroupsAreBetweenTheCFunctions) {
  EXPECT_EQ(woven_one("kccEcEc", python({"ab", "xyz"})), "kccEzyxcEbac");
  EXPECT_EQ(summary_.extended, 1U);
  EXPECT_EQ(summary_.python_only, 0U);
  EXPECT_EQ(summary_.without_record, 0U);
}

TEST_F(WholeStacks, AHiddenEvaluatorIsBehindTheInnermostFunction) {
  EXPECT_EQ(woven_one("ccEc", python({"a", "xy"})), "cyxcEac");
}

TEST_F(WholeStacks, CFunctionsThatWereUnwoundReplaceTheKernelsCallchain) {
  sample(100, "kcdd");
  record(100, python({"a", "xy"}), "ccEdcEc");
  sample(200, "kcEc");  // has none
  record(200, python({"a"}));
  EXPECT_THAT(woven(), ElementsAre("kccEyxdcEac", "kcEac"));
  EXPECT_EQ(summary_.python_only, 0U);
}

TEST_F(WholeStacks, CFunctionsThatWereUnwoundCompleteTheKernelsPart) {
  data_.events[0].attr.exclude_callchain_user = 1;
  sample(100, "k");
  record(100, python({"a"}), "cEc");
  sample(200, "");
  record(200, python({"a"}), "cEc");
  EXPECT_THAT(woven(), ElementsAre("kcEac", "cEac"));
}

// In the kernel, a thread that exits loses its tid before its last samples.
TEST_F(WholeStacks, OfThreadsThatExitHaveNoPython) {
  context_.scope = RecordingContext::Scope::kProcesses;
  data_.events[0].attr.exclude_callchain_user = 1;
  constexpr std::uint64_t kNoTid = std::uint64_t{0xffffffff} << 32U;
  data_.data += test::made_record(
      PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
      test::words(kClock, kKernel, kPid | kNoTid, 100, 2, PERF_CONTEXT_KERNEL, kKernel));
  EXPECT_EQ(woven().size(), 1U);
  EXPECT_EQ(summary_.exiting, 1U);
  EXPECT_EQ(summary_.without_record, 0U);
  EXPECT_EQ(summary_.stacks.of(perfdata::StackKind::kNoPython), 1U);
}

// At least the function that was hit.
TEST_F(WholeStacks, HaveTheInnermostFunctionIfUnmatched) {
  data_.events[0].attr.exclude_callchain_user = 1;
  sample(100, "");
  record(200, python({"a"}), "cEc");
  EXPECT_THAT(woven(), ElementsAre(testing::SizeIs(1)));
  EXPECT_EQ(summary_.without_record, 1U);
}

TEST_F(WholeStacks, AMarkSaysWhereUnwindingEnded) {
  sample(100, "kc");
  record(100, python({}), "ccd", sample::NativeEnd::kNoRule);
  EXPECT_THAT(woven(), ElementsAre("kccd[no unwind info: /usr/bin/python]"));
  EXPECT_EQ(summary_.no_information, 1U);
}

// The innermost function has a frame, so it hides no caller.
TEST_F(WholeStacks, AFunctionWithAFrameHidesNothing) {
  EXPECT_EQ(woven_one("fcEc", python({"a", "xy"})), "fyxa");
  EXPECT_EQ(summary_.python_only, 1U);
}

// d, which called the hidden function, is not known to call the evaluator.
TEST_F(WholeStacks, AFunctionThatAnyCFunctionCallsHidesNoEvaluator) {
  EXPECT_EQ(woven_one("cdEc", python({"a", "xy"})), "cyxa");
  EXPECT_EQ(summary_.python_only, 1U);
}

TEST_F(WholeStacks, LearnWhoCallsTheEvaluatorFromOtherSamples) {
  sample(100, "cdEc");
  record(100, python({"a", "xy"}));
  sample(200, "cEdEc");
  record(200, python({"a", "xy"}));
  sample(300, "cdEc");
  record(300, python({"a", "xy"}));
  EXPECT_THAT(woven(), ElementsAre("cyxa", "cEyxdEac", "cyxdEac"));
}

// a() runs in an evaluator hidden by o(), not directly outside the innermost function.
TEST_F(WholeStacks, AnEvaluatorIsHiddenInTheMiddle) {
  EXPECT_EQ(woven_one("fcEdocEc", python({"z", "a", "xy"})), "fcEyxdoacEzc");
  EXPECT_EQ(summary_.python_only, 0U);
}

TEST_F(WholeStacks, GoOnWhereFramePointersEnd) {
  EXPECT_EQ(woven_one("fcEdo", python({"ab", "xy"})), "fcEyxdoba");
}

TEST_F(WholeStacks, MayMissSeveralActivationsWhereFramePointersEnd) {
  EXPECT_EQ(woven_one("fcEdo", python({"a", "b", "xy"})), "fcEyxdoba");
}

// The innermost function could also have hidden it.
TEST_F(WholeStacks, TwoThatMayHideTheEvaluatorArePythonOnly) {
  EXPECT_EQ(woven_one("ocEdocEc", python({"z", "a", "xy"})), "oyxaz");
  EXPECT_EQ(summary_.python_only, 1U);
}

// It hides a caller, but not an evaluator: all of them are in the chain.
TEST_F(WholeStacks, AFunctionWithoutAFrameMayHideWhatDoesNotMatter) {
  EXPECT_EQ(woven_one("fcEdocEc", python({"a", "xy"})), "fcEyxdocEac");
}

// "o" is the thread's outermost function, as another sample shows.
TEST_F(WholeStacks, NothingIsHiddenWhereTheThreadBegins) {
  sample(100, "cEcco");
  record(100, python({"a"}));
  sample(200, "ocEcco");
  record(200, python({"a", "xy"}));
  EXPECT_THAT(woven(), ElementsAre("cEacco", "oyxcEacco"));
}

class WholeStacksOfCLibrary : public WholeStacks,
                              public testing::WithParamInterface<const char*> {};

// The same without another sample.
TEST_P(WholeStacksOfCLibrary, NothingIsHiddenByItsFirstFunction) {
  map(kWithout, kCodeSize, GetParam());
  EXPECT_EQ(woven_one("ocEcco", python({"a", "xy"})), "oyxcEacco");
}
INSTANTIATE_TEST_SUITE_P(Cases, WholeStacksOfCLibrary,
                         testing::Values("/lib/x86_64-linux-gnu/libc.so.6",
                                         "/lib/ld-musl-x86_64.so.1", "/usr/lib/libc.so"));

TEST_F(WholeStacks, ATruncatedStackAcrossAFunctionThatMayHideOneIsPythonOnly) {
  auto stack = python({"ab", "x"});
  stack.truncated = true;
  EXPECT_EQ(woven_one("fcEocEcEc", stack), "fxba[truncated: python stack]");
}

// The evaluator is being entered or left: it has no frame.
TEST_F(WholeStacks, TheInnermostEvaluatorMayHaveNoFrame) {
  EXPECT_EQ(woven_one("EcEc", python({"ab"})), "EcEbac");
}

TEST_F(WholeStacks, ArePythonOnlyIfTheyCannotBePaired) {
  EXPECT_EQ(woven_one("kccEc", python({"a", "b", "x"})), "kcxba");
  EXPECT_EQ(summary_.python_only, 1U);
}

TEST_F(WholeStacks, TwoEvaluatorsTooManyArePythonOnly) {
  EXPECT_EQ(woven_one("EcEcEc", python({"ab"})), "Eba");
  EXPECT_EQ(summary_.python_only, 1U);
}

// Outer functions are missing, so the evaluators that ran them get none.
TEST_F(WholeStacks, ATruncatedStackIsOfTheInnermostEvaluators) {
  auto stack = python({"ab"});
  stack.truncated = true;
  EXPECT_EQ(woven_one("EcEcEc", stack), "EbacEcEc[truncated: python stack]");
  EXPECT_EQ(summary_.python_only, 0U);
}

// The existing groups may be one position further in, or not.
TEST_F(WholeStacks, ATruncatedStackBehindAFunctionThatMayHideOneIsPythonOnly) {
  auto stack = python({"ab"});
  stack.truncated = true;
  EXPECT_EQ(woven_one("ccEcEc", stack), "cba[truncated: python stack]");
  EXPECT_EQ(summary_.python_only, 1U);
}

TEST_F(WholeStacks, ATruncatedStackOfMoreGroupsThanEvaluatorsIsPythonOnly) {
  auto stack = python({"a", "b"});
  stack.truncated = true;
  EXPECT_EQ(woven_one("Ec", stack), "Eba[truncated: python stack]");
}

// Its outer functions are missing: a missing evaluator need not be a hidden one.
TEST_F(WholeStacks, ACallchainThatTheKernelHasCutHidesNothing) {
  options_.most_entries = 5;
  EXPECT_EQ(woven_one("kccEc", python({"a", "xy"})), "kcyxa");
  EXPECT_EQ(summary_.python_only, 1U);
  options_.most_entries = 6;
  EXPECT_THAT(woven(), ElementsAre("kcyxcEac"));
  data_.events[0].attr.sample_max_stack = 5;
  EXPECT_THAT(woven(), ElementsAre("kcyxa"));
  options_.most_entries = 2;
  data_.events[0].attr.sample_max_stack = 6;
  EXPECT_THAT(woven(), ElementsAre("kcyxcEac")) << "limit of the event itself";
}

TEST_F(WholeStacks, ACutCallchainCanBePairedNevertheless) {
  options_.most_entries = 4;
  EXPECT_EQ(woven_one("ccEc", python({"ab"})), "ccEbac");
}

// An outer evaluator may be missing, and the innermost may have no frame yet.
TEST_F(WholeStacks, ACutCallchainThatBeginsInTheEvaluatorIsPythonOnly) {
  options_.most_entries = 3;
  EXPECT_EQ(woven_one("EcE", python({"a", "b"})), "Eba");
  EXPECT_EQ(summary_.python_only, 1U);
  options_.most_entries = 4;
  EXPECT_THAT(woven(), ElementsAre("EbcEa"));
}

// The leaf is in the evaluator: it cannot have hidden another one.
TEST_F(WholeStacks, AnEvaluatorHidesNoOther) {
  EXPECT_EQ(woven_one("EcEc", python({"a", "b", "x"})), "Exba");
}

TEST_F(WholeStacks, IgnoreTheChainIfThereAreNoFramePointers) {
  context_.interpreters[kPid][0].frame_pointers = false;
  EXPECT_EQ(woven_one("kcEc", python({"ab"})), "kcba");
  EXPECT_EQ(summary_.python_only, 1U);
}

// The sample says what its C stack lacks.
TEST_F(WholeStacks, ABrokenStackIsPythonOnly) {
  data_.events[0] = test::made_dwarf_event(kType, {kClock});
  const auto add = [this](std::uint64_t time) {
    data_.data +=
        test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                          test::words(kClock, kCode, kTask, time, 0, PERF_SAMPLE_REGS_ABI_64,
                                      0xff00, 0xfe00, kCode + 0x10, 16, 0, 0, 16));
  };
  add(100);
  add(200);
  record(100, python({"a"}));
  const auto chains = woven();
  EXPECT_EQ(chains.at(0), "ca[no unwind info: /usr/bin/python]");
  EXPECT_EQ(chains.at(1), "c[no unwind info: /usr/bin/python]");
  EXPECT_EQ(summary_.unwound, 2U);
  EXPECT_EQ(summary_.no_information, 2U);
  EXPECT_EQ(summary_.python_only, 1U);
  EXPECT_EQ(summary_.python_only_cut, 0U);
}

TEST_F(WholeStacks, ArePythonOnlyWhereTheEvaluatorIsUnknown) {
  context_.interpreters[kPid][0].evaluator.clear();
  EXPECT_EQ(woven_one("ccc", python({"a"})), "ca");
}

TEST_F(WholeStacks, ASampleOfTheKernelAloneStays) {
  EXPECT_EQ(woven_one("k", python({"a"})), "k");
  EXPECT_EQ(summary_.without_record, 0U);
}

TEST_F(WholeStacks, AThreadWithoutPythonStays) {
  context_.interpreters[kPid][0].frame_pointers = false;
  EXPECT_EQ(woven_one("cEc", {}), "cEc");
  EXPECT_EQ(summary_.extended, 0U);
  EXPECT_EQ(summary_.without_record, 0U);
}

TEST_F(WholeStacks, ASampleWithoutARecordStaysAndIsCounted) {
  sample(100, "cEc");
  sample(200, "cEc");
  record(200, python({"a"}));
  EXPECT_THAT(woven(), ElementsAre("cEc", "cEac"));
  EXPECT_EQ(summary_.without_record, 1U);
}

// At a tracepoint, the program runs shortly before its samples: a record of another event is not
// theirs, nor is one of a tracepoint that of another event.
TEST_F(WholeStacks, ASampleOfATracepointTakesTheLastRecordOfOne) {
  data_.events[1].attr.type = PERF_TYPE_TRACEPOINT;
  sample(90, "cEc", kSwitches);
  sample(130, "cEc", kSwitches);
  sample(130, "cEc", kSwitches);
  sample(130, "cEc");
  record_traced(100, python({"a"}));
  record_traced(110, python({"b"}));
  record(120, python({"a"}));
  record(130, python({"a"}));
  record_traced(140, python({"a"}));
  EXPECT_THAT(woven(), ElementsAre("cEc", "cEbc", "cEbc", "cEac"));
  EXPECT_EQ(summary_.without_record, 1U);
}

// If records were lost, the last one may be that of an earlier sample.
TEST_F(WholeStacks, ASampleOfATracepointTakesNoOldRecordIfSomeAreLost) {
  data_.events[1].attr.type = PERF_TYPE_TRACEPOINT;
  sample(2'000'000, "cEc", kSwitches);
  sample(200'000'000, "cEc", kSwitches);
  record_traced(100, python({"a"}));
  EXPECT_THAT(woven(), ElementsAre("cEac", "cEc"));
  stacks_.some_are_lost();
  EXPECT_THAT(woven(), ElementsAre("cEc", "cEc"));
}

TEST_F(WholeStacks, ASampleOfATracepointTakesNoRecordOfTheProgramBefore) {
  data_.events[1].attr.type = PERF_TYPE_TRACEPOINT;
  exec(150, kPid);
  sample(200, "cEc", kSwitches);
  record_traced(100, python({"a"}));
  EXPECT_THAT(woven(), ElementsAre("c")) << "whose mappings are unknown";
}

TEST_F(WholeStacks, ASampleWithoutACallchainIsCounted) {
  data_.events[1] = test::made_event(kType & ~std::uint64_t{PERF_SAMPLE_CALLCHAIN}, {kSwitches});
  data_.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                                  test::words(kSwitches, kCode, kTask, 100));
  EXPECT_THAT(woven(), ElementsAre(""));
  EXPECT_EQ(summary_.without_record, 1U);
}

TEST_F(WholeStacks, ThoseOfAnotherTimeAreCountedApart) {
  context_.from = 200;
  context_.until = 300;
  for (const auto time : {100U, 200U, 250U, 300U, 400U}) {
    sample(time, "cEc");
  }
  record(200, python({"a"}));
  record(300, python({"a"}));
  EXPECT_THAT(woven(), ElementsAre("cEc", "cEac", "cEc", "cEac", "cEc"));
  EXPECT_EQ(summary_.without_record, 3U);
  EXPECT_EQ(summary_.of_another_time, 2U);
  data_.events[1].attr.type = PERF_TYPE_TRACEPOINT;
  sample(250, "cEc", kSwitches);
  sample(400, "cEc", kSwitches);
  EXPECT_EQ(woven().size(), 7U);
  EXPECT_EQ(summary_.without_record, 5U);
  EXPECT_EQ(summary_.of_another_time, 3U);
}

TEST_F(WholeStacks, AreNotMissedInOtherProcesses) {
  context_.interpreters.clear();
  sample(100, "ccc");
  EXPECT_THAT(woven(), ElementsAre("ccc"));
  EXPECT_EQ(summary_.without_record, 0U);
}

// -X perf, or switched on earlier: the process has trampolines.
class WholeStacksBesideTrampolines : public WholeStacks {
 protected:
  WholeStacksBesideTrampolines() {
    context_.open_map = [](std::uint32_t) {
      auto map = test::memory_file(fmt::format("{:x} 20 py::x:f.py\n", kArena));
      EXPECT_EQ(::lseek(map.get(), 0, SEEK_SET), 0);
      return map;
    };
  }
};

TEST_F(WholeStacksBesideTrampolines, AreNotDoubled) {
  EXPECT_EQ(woven_one("cETcEc", python({"a", "x"})), "cETcEac");
}

TEST_F(WholeStacksBesideTrampolines, HaveTheirOwnPlacesWhichHaveLines) {
  EXPECT_EQ(woven_one("cEc", python({"x"})), "cExc");
}

// The owner of a JIT's code is unknown.
TEST_F(WholeStacks, OtherAnonymousCodeIsNoTrampoline) {
  EXPECT_EQ(woven_one("cTEc", python({"a"})), "cTEac");
}

TEST_F(WholeStacks, MarksAreAtTheRoot) {
  auto stack = python({"a"});
  stack.truncated = true;
  stack.task = "main";
  stack.gil = sample::Gil::kHeld;
  EXPECT_EQ(woven_one("Ec", stack), "Eac[truncated: python stack]")
      << "other marks only on request";
  EXPECT_EQ(summary_.truncated, 1U);
  options_.flags.gil = options_.flags.tasks = true;
  EXPECT_THAT(woven(), ElementsAre("Eac[truncated: python stack][task main][GIL held]"));
  stack.gil = sample::Gil::kWaitedFor;
  sample(200, "Ec");
  record(200, stack);
  EXPECT_EQ(woven().at(1), "Eac[truncated: python stack][task main][waiting for the GIL]");
}

TEST_F(WholeStacks, HaveNoMarkIfTheGilIsUnknown) {
  options_.flags.gil = options_.flags.tasks = true;
  for (const auto state : {sample::Gil::kUnknown, sample::Gil::kNone}) {
    auto stack = python({"a"});
    stack.gil = state;
    record(static_cast<std::uint64_t>(state) + 100, stack);
    sample(static_cast<std::uint64_t>(state) + 100, "cEc");
  }
  EXPECT_THAT(woven(), ElementsAre("cEac", "cEac"));
}

TEST_F(WholeStacks, AddressesTellLines) {
  sample(100, "cEc");
  record(100, python({"a"}, 12));
  sample(200, "cEc");
  record(200, python({"a"}, 40));
  EXPECT_THAT(woven(), ElementsAre("cEac", "cEac"));
  std::vector<std::uint64_t> addresses;
  auto input = output();
  perfdata::Sample sample;
  while (const auto record = input.next()) {
    if (input.parse(*record, sample)) {
      addresses.push_back(sample.chain.at(3));
    }
  }
  ASSERT_EQ(addresses.size(), 2U);
  EXPECT_EQ(addresses[0] % 16, (9 + 4 * 2) % 16) << "line 12 of a function that starts at line 10";
  EXPECT_EQ(addresses[1] - addresses[0], 4 * 28U);
}

TEST_F(WholeStacks, AnUnknownCodeSaysSo) {
  EXPECT_EQ(woven_one("cEc", python({"q"})), "cE[unknown]c");
}

}  // namespace
}  // namespace pyinject::weave
