// A synthetic process with a Python stack for each sample, and its callchains after
// post-processing.
#pragma once

#include "perfdata/input.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "support/made_perf_data.hpp"
#include "weave/sampled_stacks.hpp"
#include "weave/weave.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pyinject::weave {

class MadeProcess : public testing::Test {
 protected:
  static constexpr std::uint32_t kPid = 7;
  static constexpr std::uint64_t kTask = kPid | std::uint64_t{kPid} << 32U;
  static constexpr std::uint64_t kType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                         PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
  static constexpr std::uint64_t kClock = 1;  // ids of events
  static constexpr std::uint64_t kSwitches = 2;
  static constexpr std::uint64_t kCode = 0x400000;
  static constexpr std::uint64_t kCodeSize = 0x10000;
  static constexpr std::uint64_t kEvaluator = 0x404000;
  static constexpr std::uint64_t kArena = 0x700000;     // of trampolines
  static constexpr std::uint64_t kWithout = 0x800000;   // a library without frame pointers
  static constexpr std::uint64_t kWith = 0x900000;      // and one with frame pointers
  static constexpr std::uint64_t kGreenlet = 0xa00000;  // greenlet's module, if mapped
  static constexpr std::uint64_t kKernel = 0xffffffff81000000;

  MadeProcess();

  void map(std::uint64_t begin, std::uint64_t size, const std::string& file,
           std::uint32_t pid = kPid, std::uint64_t time = 0);
  // A file that stands for greenlet's module.
  [[nodiscard]] static std::string greenlet_module();
  // The trailer that the kernel appends to records other than samples.
  static std::string behind(std::uint64_t time) { return test::words(kTask, time, kClock); }
  // LETTERS of the callchain, innermost first: c and d are C functions of the interpreter, E the
  // evaluator, T a trampoline, o a function of a library without frame pointers, f one with a
  // frame, k the kernel. Of greenlet's module: s is g_initialstub, r inner_bootstrap, w g_switch, v
  // g_switchstack, m another function.
  void sample(std::uint64_t time, std::string_view letters, std::uint64_t event = kClock,
              std::uint32_t pid = kPid);
  [[nodiscard]] static std::vector<std::uint64_t> chain(std::string_view letters);
  void fork(std::uint64_t time, std::uint32_t parent, std::uint32_t child);
  void exec(std::uint64_t time, std::uint32_t pid);
  // GROUPS, outermost first: in the group "ab", a called b.
  static sample::Stack python(std::initializer_list<std::string_view> groups,
                              std::uint32_t line = 10);
  void record(std::uint64_t time, sample::Stack stack, std::uint32_t pid = kPid) {
    stack.pid = pid;
    stack.tid = pid;
    stack.time = time;
    stacks_.add(stack);
  }
  // The same, with the C functions LETTERS.
  void record(std::uint64_t time, sample::Stack stack, std::string_view letters,
              sample::NativeEnd end = sample::NativeEnd::kRoot) {
    stack.native = chain(letters);
    stack.native.erase(stack.native.begin());  // the mark of the user part
    stack.native_end = end;
    record(time, std::move(stack));
    context_.native = &stacks_;
  }
  // The same, of a tracepoint.
  void record_traced(std::uint64_t time, sample::Stack stack) {
    stack.traced = true;
    record(time, std::move(stack));
  }

  void weave();
  // The chains of all samples in the letters above; Python functions by name.
  std::vector<std::string> woven();
  std::string woven_one(std::string_view letters, const sample::Stack& stack);
  // The post-processed file, from its start.
  [[nodiscard]] perfdata::Input output() const;

  test::MadePerfData data_;
  SampledStacks stacks_;
  RecordingContext context_;
  WeaveOptions options_;
  base::UniqueFd file_;
  WeaveSummary summary_;

 private:
  [[nodiscard]] std::string word(std::uint64_t address) const;
  [[nodiscard]] std::string name_at(std::uint64_t address) const;
};

}  // namespace pyinject::weave
