// Native stacks stay whole while a process forks, executes a program and maps libraries.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace pyinject::test {
namespace {

class NativeChanges : public testing::TestWithParam<Build> {};
INSTANTIATE_TEST_SUITE_P(Builds, NativeChanges, testing::ValuesIn(all_builds()), BuildName{});

// Whether it ends with a C function, as each thread begins with some, and has no mark. Without C
// functions, it ends with a Python function, or is only the function that was hit.
bool is_whole(const ScriptedSample& sample) {
  constexpr std::size_t kAtLeast = 3;
  return sample.frames.size() >= kAtLeast && !sample.frames.back().python() &&
         std::ranges::none_of(sample.frames, [](const ScriptFrame& frame) {
           return frame.symbol.starts_with("[no unwind info") ||
                  frame.symbol.starts_with("[broken");
         });
}

TEST_P(NativeChanges, AreFollowed) {
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  const auto found = find_build(GetParam());
  if (!found) {
    GTEST_SKIP() << "not installed, or without a JIT (scripts/pythons)";
  }
  PythonProcess python{*found,
                       target_source("changing.py"),
                       {.interpreter_args = {}, .args = {}, .child = environment_of(GetParam())}};
  const TempDir directory;
  const auto data = directory / "data";
  RunningRecord record{bpf_record(std::to_string(python.pid().value()), data)};
  python.send_line("go");
  std::map<std::string, std::string> parts{{std::to_string(python.pid().value()), "mapped"}};
  for (const auto* const part : {"forked", "executed"}) {
    const auto words = base::split(python.read_line(), ' ');
    ASSERT_EQ(words.size(), 3U);
    ASSERT_EQ(words[2], "0") << part;
    parts.emplace(words[1], part);
  }
  ASSERT_EQ(python.read_line(), "over");
  ASSERT_EQ(record.finish(), ExitStatus{}) << record.child().err();
  std::map<std::string, std::vector<bool>> incomplete;
  for (const auto& sample : samples_without_kernel_names(data)) {
    const auto part = parts.find(sample.pid);
    if (part != parts.end()) {
      incomplete[part->second].push_back(!is_whole(sample));
    }
  }
  for (const auto& [pid, part] : parts) {
    const auto& all = incomplete[part];
    RecordProperty("incomplete_" + part, std::to_string(std::ranges::count(all, true)));
    EXPECT_GT(all.size(), 300U) << part;
    // The JIT of 3.14 keeps no frame pointers.
    if (!(GetParam().jit && GetParam().minor == 14)) {
      // The change is noticed while the first half is sampled: mostly within a hundredth of it, but
      // the tool may have to wait for a processor.
      const auto half = all.begin() + std::ssize(all) / 2;
      EXPECT_TRUE(
          share_is_at_most({.count = static_cast<std::size_t>(std::count(half, all.end(), true)),
                            .all = static_cast<std::size_t>(all.end() - half)},
                           0.01))
          << part;
    }
  }
}

}  // namespace
}  // namespace pyinject::test
