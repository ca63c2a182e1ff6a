// Native stacks stay whole while a process forks, executes a program and maps libraries.
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "support/python_process.hpp"
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
  const TempDir folder;
  const auto data = folder / "data";
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
  std::map<std::string, std::size_t> all;
  std::map<std::string, std::size_t> incomplete;
  for (const auto& sample : scripted_samples(data)) {
    const auto part = parts.find(sample.pid);
    if (part != parts.end()) {
      ++all[part->second];
      incomplete[part->second] += is_whole(sample) ? 0 : 1;
    }
  }
  for (const auto& [pid, part] : parts) {
    RecordProperty("incomplete_" + part, std::to_string(incomplete[part]));
    EXPECT_GT(all[part], 300U) << part;
    // The JIT of 3.14 keeps no frame pointers.
    if (!(GetParam().jit && GetParam().minor == 14)) {
      // A hundred milliseconds after each change, and one in a hundred.
      EXPECT_LE(incomplete[part], 100 + all[part] / 100) << part;
    }
  }
}

}  // namespace
}  // namespace pyinject::test
