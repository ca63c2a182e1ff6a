// The BPF program finds the callers that the user-space unwinder finds in perf's copies of the
// stack: the same samples by both ways, each program counter compared.
#include "base/file.hpp"
#include "e2e/bpf_recording.hpp"
#include "perfdata/input.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/target.hpp"
#include "record/stack_sampler.hpp"
#include "support/bpf_engine.hpp"
#include "support/child_process.hpp"
#include "support/cpu_time.hpp"
#include "support/fake_python.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/python_process.hpp"
#include "support/statistics.hpp"
#include "support/temp_dir.hpp"
#include "weave/recorded_files.hpp"
#include "weave/weave.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <linux/perf_event.h>

namespace pyinject::test {
namespace {

using base::Deadline;
using std::chrono::seconds;

struct Compared {
  std::size_t equal = 0;  // each program counter
  std::size_t different = 0;
  std::size_t early = 0;  // ends before the unwinder's does, and is equal up to there
  std::size_t cut = 0;    // perf's copy ends before the stack does: equal up to there
  std::size_t root = 0;   // the program reached the first function of the thread
  std::size_t frames = 0;
  std::string first;  // the first difference
  [[nodiscard]] std::size_t all() const { return equal + different + early + cut; }
};

std::string text_of(const std::vector<std::uint64_t>& chain) {
  std::string text;
  for (const auto address : chain) {
    text += fmt::format(" {:x}", address);
  }
  return text;
}

class NativeStacks : public testing::TestWithParam<Build> {
 protected:
  void SetUp() override {
    if (const auto lacks = bpf_engine_lacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    const auto found = find_build(GetParam());
    if (!found) {
      GTEST_SKIP() << "not installed, or without a JIT (scripts/pythons)";
    }
    python_ = *found;
  }

  // Records the target for TIME of its processor time, with copies of the stack and with the
  // program.
  Compared record(const std::string& depth, seconds time,
                  const std::vector<std::string>& interpreter_args = {},
                  const std::vector<std::string>& more = {}) {
    PythonOptions options{.interpreter_args = interpreter_args,
                          .args = {depth, "threads"},
                          .child = environment_of(GetParam())};
    options.args.insert(options.args.end(), more.begin(), more.end());
    PythonProcess python{python_, target_source("mixed.py"), options};
    const auto detection = python::make_detector(python::Purpose::kObserve)->detect(python.pid());
    EXPECT_TRUE(std::holds_alternative<python::Target>(detection));
    RecordingLogger logger;
    auto opened = record::StackSampler::open({}, true, logger);
    auto& sampler = *std::get<std::unique_ptr<record::StackSampler>>(opened);
    sampler.keep_time_by(CLOCK_MONOTONIC);
    EXPECT_FALSE(sampler.add(std::get<python::Target>(detection)));
    sampler.start();
    if (GetParam().jit) {
      wait_for_cpu_time(python.pid(), seconds{4});  // then the JIT has made most of its code
    }
    const auto data = directory_ / "data";
    ChildProcess perf{{"perf", "record", "-q", "-k", "mono", "-F", "499", "-e", "cpu-clock",
                       "--call-graph", "dwarf,65528", "-m", "8M", "-o", data, "-p",
                       std::to_string(python.pid().value())}};
    const auto deadline = Deadline::after(kPatience);
    while (!base::read_file(data, 8).value_or("").starts_with("PERFILE2") && !deadline.expired()) {
      (void)sampler.join(perf.pid(), {});
      sampler.leave();
    }
    EXPECT_TRUE(sampler.join(perf.pid(), {})) << sampler.why_not_attached();
    wait_for_cpu_time(python.pid(), time);
    const auto maps = procfs::read_maps(python.pid());
    ::kill(perf.pid().value(), SIGINT);
    (void)perf.wait(Deadline::after(kPatience));
    python.pause();
    sampler.leave();
    sampler.stop();
    return compare(data, sampler.stacks(), *maps);
  }

 private:
  Compared compare(const std::string& data, weave::SampledStacks& stacks,
                   const std::vector<procfs::Mapping>& maps) {
    const auto unwound = directory_ / "unwound";
    weave::WeaveOptions options;
    options.input = data;
    options.output = unwound;
    options.image_path = [this](std::uint32_t pid) { return directory_ / fmt::format("{}", pid); };
    weave::RecordingContext context;
    context.open_map = [this](std::uint32_t pid) {
      const auto path = fmt::format("{}/tmp/perf-{}.map", python_.root, pid);
      return base::UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    };
    weave::RecordedFiles files;
    const auto woven = weave::weave(options, context, files);
    EXPECT_TRUE(std::holds_alternative<weave::WeaveSummary>(woven));
    auto input = std::get<perfdata::Input>(perfdata::Input::open(unwound));
    perfdata::Sample sample;
    Compared result;
    while (const auto record = input.next()) {
      if (!input.parse(*record, sample)) {
        continue;
      }
      const auto native =
          stacks.native_at({.pid = sample.pid, .tid = sample.tid, .time = sample.time});
      if (native.chain.empty()) {
        continue;  // from before the program was attached
      }
      const auto user = std::ranges::find(sample.chain, std::uint64_t{PERF_CONTEXT_USER});
      std::vector<std::uint64_t> chain{user == sample.chain.end() ? user : user + 1,
                                       sample.chain.end()};
      result.frames += native.chain.size();
      result.root += native.end == unwind::EndOfStack::kWhole ? 1 : 0;
      // A mark is in no mapping.
      const bool cut = !chain.empty() &&
                       procfs::find_mapping(maps, base::RemoteAddress{chain.back()}) == nullptr;
      if (cut) {
        chain.pop_back();
      }
      const bool begins_alike = chain.size() <= native.chain.size() &&
                                std::equal(chain.begin(), chain.end(), native.chain.begin());
      const bool early = native.chain.size() < chain.size() &&
                         std::equal(native.chain.begin(), native.chain.end(), chain.begin());
      if (early) {
        ++result.early;
      } else if (!begins_alike || (!cut && chain.size() != native.chain.size())) {
        result.first = result.different == 0 ? text_of(chain) + "\nnative:" + text_of(native.chain)
                                             : result.first;
        ++result.different;
      } else {
        ++(cut ? result.cut : result.equal);
      }
    }
    fmt::print(
        "{} equal, {} cut, {} early, {} different, {} reach the root, {:.1f} functions each\n",
        result.equal, result.cut, result.early, result.different, result.root,
        static_cast<double>(result.frames) /
            static_cast<double>(std::max<std::size_t>(result.all(), 1)));
    return result;
  }

  Interpreter python_;
  TempDir directory_;
};
INSTANTIATE_TEST_SUITE_P(Builds, NativeStacks, testing::ValuesIn(all_builds()), BuildName{});

// One sample in a thousand may differ. With the JIT, some end early, one in a thousand for each of
// FUNCTIONS: any of them may be code that was made after the last scan. The JIT of 3.14 keeps no
// frame pointers: its stacks end there by both ways.
void expect_equal(const Compared& compared, const Build& build, std::size_t at_least,
                  std::size_t functions) {
  EXPECT_GE(compared.all(), at_least);
  constexpr double kOfThousand = 0.001;
  const auto part = [&](std::size_t count) { return Part{.count = count, .all = compared.all()}; };
  EXPECT_TRUE(share_is_at_most(part(compared.different), kOfThousand)) << compared.first;
  EXPECT_TRUE(
      share_is_at_most(part(compared.early),
                       build.jit ? static_cast<double>(functions) * kOfThousand : kOfThousand));
  if (!build.jit) {
    EXPECT_TRUE(share_is_at_least(part(compared.root), 1 - kOfThousand));
    EXPECT_GE(compared.frames, functions * compared.all());
  }
}

TEST_P(NativeStacks, AreThoseOfTheUnwinder) {
  expect_equal(record("3", seconds{1}), GetParam(), 300, 40);
}

// libffi maps a page of its code once more, by chance below the code itself.
TEST_P(NativeStacks, AgreeWithTheUnwinderForFilesThatAreMappedAgain) {
  expect_equal(record("3", seconds{1}, {}, {"again"}), GetParam(), 200, 40);
}

// Perf copies at most 64 KiB of a stack.
TEST_P(NativeStacks, AgreeWithTheUnwinderForHundredsOfFunctions) {
  expect_equal(record("60", seconds{1}), GetParam(), 200, 300);
}

TEST_P(NativeStacks, ThroughTrampolinesAreThoseOfTheUnwinder) {
  if (GetParam().jit) {
    GTEST_SKIP() << "the JIT excludes the trampoline";
  }
  expect_equal(record("3", seconds{1}, {"-X", "perf"}), GetParam(), 200, 80);
}

}  // namespace
}  // namespace pyinject::test
