// The line of each sample, compared with the program's own measurement.
#include "base/file.hpp"
#include "base/text.hpp"
#include "e2e/bpf_recording.hpp"
#include "e2e/served_tree.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace pyinject::test {
namespace {

// Of the time that the program measures. Measured: 0.4 points at most, of 10,000 samples.
constexpr double kBias = 0.005;

using Shares = std::map<char, double>;  // of the loops A, B and C, in percent

class Program {
 public:
  Program() : text_{target_source("three_loops.py")} {
    std::size_t number = 0;
    for (const auto line : base::split(text_, '\n')) {
      ++number;
      if (const auto mark = line.rfind("  # "); mark != std::string_view::npos) {
        loops_[number] = line.at(mark + 4);
      }
      if (line.starts_with("def work(")) {
        first_ = number;
      }
      lines_[std::string{base::trim(line)}] = number;
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t first_line() const { return first_; }
  // The number of a line whose text is unique.
  [[nodiscard]] std::size_t number_of(const std::string& line) const { return lines_.at(line); }
  // '?': in none of the loops.
  [[nodiscard]] char loop_of(std::size_t line) const {
    const auto found = loops_.find(line);
    return found == loops_.end() ? '?' : found->second;
  }

 private:
  std::string text_;
  std::map<std::size_t, char> loops_;         // by line
  std::map<std::string, std::size_t> lines_;  // by text without surrounding blanks
  std::size_t first_ = 0;
};

Shares percent(Shares counts) {
  double sum = 0;
  for (const auto& [loop, count] : counts) {
    sum += count;
  }
  for (auto& [loop, count] : counts) {
    count *= 100 / sum;
  }
  return counts;
}

Shares truth(const std::string& answer) {
  Shares counts;
  char loop = 'A';
  for (const auto word : base::split(answer, ' ')) {
    counts[loop++] = static_cast<double>(base::parse_number<long>(word).value());
  }
  return percent(counts);
}

// The address encodes the line: its offset in the function is eight, plus four times the line's
// distance from the first line, plus what the function does.
std::size_t line_by_offset(const ScriptFrame& frame, std::size_t first) {
  constexpr std::size_t kEntry = 8;
  return first + (frame.offset - kEntry) / 4;
}

class BpfLines : public testing::TestWithParam<Build> {};

TEST_P(BpfLines, HaveTheTimeThatTheProgramMeasures) {
  const auto python = find_build(GetParam());
  if (const auto lacks = bpf_engine_lacks(); !lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no " << name(GetParam()) << " (scripts/pythons)";
  }
  const Program program;
  PythonOptions options;
  options.child = environment_of(GetParam());
  PythonProcess target{*python, program.text(), options};
  const TempDir directory;
  RunningRecord running{
      bpf_record(std::to_string(target.pid().value()), directory / "data", "4999")};
  target.send_line("2000");
  const auto told = truth(target.read_line(kPatience));
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  Shares counts;
  double all = 0;
  for (const auto& sample : samples_without_kernel_names(directory / "data")) {
    const auto* const frame = sample.innermost();
    if (frame != nullptr && frame->function() == "work") {
      counts[program.loop_of(line_by_offset(*frame, program.first_line()))] += 1;
      all += 1;
    }
  }
  EXPECT_GE(all, 5000) << running.child().err();
  EXPECT_LE(counts['?'], all / 50) << "samples in lines outside the loops";
  all -= counts['?'];
  counts.erase('?');
  const auto seen = percent(counts);
  for (const auto& [loop, share] : told) {
    const auto measured = seen.contains(loop) ? seen.at(loop) : 0;
    RecordProperty(std::string{loop}, fmt::format("{:.1f} of {:.1f}", measured, share));
    const auto count = std::llround(measured * all / 100);
    EXPECT_TRUE(share_is_near(
        {.count = static_cast<std::size_t>(count), .all = static_cast<std::size_t>(all)},
        share / 100, kBias))
        << loop;
  }
}

INSTANTIATE_TEST_SUITE_P(Pythons, BpfLines, testing::ValuesIn(all_builds()), BuildName{});

class LinesInNames : public testing::TestWithParam<std::string> {};

// The trampoline does not know the lines of functions that were entered after the attach.
TEST_P(LinesInNames, AreThoseThatRun) {
  const bool bpf = GetParam() == "bpf";
  const auto lacks = bpf ? bpf_engine_lacks() : std::string{};
  const auto python = plain_interpreter(13);
  if (!lacks.empty() || !python) {
    GTEST_SKIP() << lacks << " or no CPython 3.13 (scripts/pythons)";
  }
  const Program program;
  PythonProcess target{*python, program.text()};
  const TempDir directory;
  const auto data = directory / "data";
  RunningRecord running{{"--engine", GetParam(), "--lines", "-p",
                         std::to_string(target.pid().value()), "-F", "999", "-e", "cpu-clock", "-o",
                         data}};
  target.send_line("4000");
  (void)target.read_line(kPatience);
  ASSERT_EQ(running.finish(), ExitStatus{}) << running.child().err();
  const auto callers =
      fmt::format("py::<module>:<string>:{};py::serve:<string>:{}", program.number_of("serve()"),
                  program.number_of("print(*work(int(line), numbers, text), flush=True)"));
  const std::string work = "py::work:<string>";
  const auto script = source_dir() + "/perf-scripts/scripts/python/pyinject-collapsed.py";
  const auto folded = run({"perf", "script", "-s", script, "-i", data, "--", "--python-only"});
  ASSERT_EQ(folded.status, ExitStatus{}) << folded.err;
  long all = 0;
  long right = 0;
  for (const auto line : base::split(folded.out, '\n')) {
    const auto count = line.rfind(' ');
    const auto found = line.find(";" + work);
    if (found == std::string_view::npos) {
      continue;
    }
    const auto samples = base::parse_number<long>(line.substr(count + 1)).value_or(0);
    all += samples;
    const auto number = line.substr(found + work.size() + 1, count - found - work.size() - 1);
    const bool in_a_loop =
        number.starts_with(':') &&
        program.loop_of(base::parse_number<std::size_t>(number.substr(1)).value_or(0)) != '?';
    right += line.substr(0, found).ends_with(callers) && (bpf ? in_a_loop : number.empty())
                 ? samples
                 : 0;
  }
  EXPECT_GE(all, 200) << folded.out << running.child().err();
  // The trampoline polls for the lines of functions entered before the attach, every 50 ms.
  EXPECT_GE(100 * right, (bpf ? 97 : 90) * all) << folded.out << running.child().err();
}

INSTANTIATE_TEST_SUITE_P(Engines, LinesInNames, testing::Values("trampoline", "bpf"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace pyinject::test
