// A made process whose samples have a Python stack each, and what their callchains become when they
// are woven.
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
  static constexpr std::uint64_t kArena = 0x700000;    // of trampolines
  static constexpr std::uint64_t kWithout = 0x800000;  // a library without frame pointers
  static constexpr std::uint64_t kWith = 0x900000;     // and one that has some
  static constexpr std::uint64_t kKernel = 0xffffffff81000000;

  MadeProcess();

  void map(std::uint64_t begin, std::uint64_t size, const std::string& file);
  // What the kernel puts behind records that are no samples.
  static std::string behind(std::uint64_t time) { return test::words(kTask, time, kClock); }
  // LETTERS of the callchain, innermost first: c and d are C functions of the interpreter, E is the
  // evaluator, T a trampoline, o a function of a library without frame pointers, f one that has a
  // frame, k the kernel.
  void sample(std::uint64_t time, std::string_view letters, std::uint64_t event = kClock,
              std::uint32_t pid = kPid);
  void fork(std::uint64_t time, std::uint32_t parent, std::uint32_t child);
  void exec(std::uint64_t time, std::uint32_t pid);
  // GROUPS, outermost first: "ab" is one in which a called b.
  static PythonStack python(std::initializer_list<std::string_view> groups,
                            std::uint32_t line = 10);
  void record(std::uint64_t time, const PythonStack& stack, std::uint32_t pid = kPid) {
    stacks_.add(pid, pid, time, stack);
  }

  void weave();
  // All samples' chains, as above; Python functions by their names.
  std::vector<std::string> woven();
  std::string woven_one(std::string_view letters, const PythonStack& stack);
  // Of what was woven, from its beginning.
  [[nodiscard]] perfdata::Input output() const;

  test::MadePerfData data_;
  SampledStacks stacks_;
  RecordingContext context_;
  WeaveOptions options_;
  base::UniqueFd file_;
  WeaveSummary summary_;

 private:
  [[nodiscard]] static std::vector<std::uint64_t> chain(std::string_view letters);
  [[nodiscard]] std::string word(std::uint64_t address) const;
  [[nodiscard]] std::string name_at(std::uint64_t address) const;
};

}  // namespace pyinject::weave
