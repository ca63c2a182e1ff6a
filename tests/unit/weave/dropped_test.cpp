// A recording with a hostile and an innocent process: the post-processed stacks of both, and the
// summary.
#include "perfdata/input.hpp"
#include "support/made_elf.hpp"
#include "support/made_perf_data.hpp"
#include "weave/weaver.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pyinject::weave {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint32_t kHostile = 10;
constexpr std::uint32_t kInnocent = 20;
constexpr std::uint64_t kFile = 0x10000000;
constexpr std::uint64_t kArena = 0x20000000;
constexpr std::uint32_t kSize = 0x1000;
constexpr std::uint64_t kStack = 0x7000;

std::uint64_t task(std::uint32_t pid) { return pid | std::uint64_t{pid} << 32U; }

class MadeFiles : public unwind::FileFinder {
 public:
  [[nodiscard]] std::vector<base::UniqueFd> candidates(const unwind::MappedFile& file) override {
    std::vector<base::UniqueFd> found;
    found.emplace_back(::fcntl(files.at(file.mapped_by).get(), F_DUPFD_CLOEXEC, 0));
    return found;
  }
  std::map<std::uint32_t, base::UniqueFd> files;  // by process
};

class WeaveDropped : public testing::Test {
 protected:
  WeaveDropped() {
    data_.events = {test::made_dwarf_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                           PERF_SAMPLE_CALLCHAIN)};
    options_.image_path = [](std::uint32_t pid) { return fmt::format("/names-{}", pid); };
  }

  void add_process(std::uint32_t pid, const std::string& command, const std::string& program) {
    files_.files[pid] = test::made_elf(test::made_unwind_table(program, kSize));
    data_.data += test::made_record(
        PERF_RECORD_COMM, 0,
        test::words(task(pid)) + test::padded(command) + test::words(task(pid), 1));
    map(pid, kFile, "/made", pid);
  }
  void map(std::uint32_t pid, std::uint64_t begin, const std::string& file, std::uint64_t inode) {
    data_.data += test::made_record(
        PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
        test::words(task(pid), begin, kSize, 0, 0, inode, 0, std::uint64_t{PROT_READ | PROT_EXEC}) +
            test::padded(file) + test::words(task(pid), 1));
  }
  void sample(std::uint32_t pid, std::size_t depth, std::uint64_t at = kFile) {
    std::string stack;
    for (std::size_t i = 1; i < depth; ++i) {
      stack += test::words(kFile + 1 + i % (kSize - 1));
    }
    stack += test::words(0);
    data_.data += test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                                    test::words(at, task(pid), ++time_, 0, PERF_SAMPLE_REGS_ABI_64,
                                                0, kStack, at, stack.size()) +
                                        stack + test::words(stack.size()));
  }

  void weave() {
    auto input =
        std::get<perfdata::Input>(perfdata::Input::open(test::memory_file(data_.bytes()), "made"));
    Weaver weaver{options_, context_, files_, input};
    output_ = test::memory_file("");
    ASSERT_TRUE(weaver.learn() && weaver.rewrite(output_.get()));
    summary_ = weaver.take_summary();
  }
  // The lengths of PID's callchains.
  std::vector<std::size_t> depths(std::uint32_t pid) {
    auto woven = std::get<perfdata::Input>(perfdata::Input::open(std::move(output_), "woven"));
    std::vector<std::size_t> result;
    perfdata::Sample sample;
    while (const auto record = woven.next()) {
      if (woven.parse(*record, sample) && sample.pid == pid) {
        result.push_back(sample.chain.size() - 1);  // without the leading context mark
      }
    }
    return result;
  }

  test::MadePerfData data_;
  MadeFiles files_;
  RecordingContext context_;
  WeaveOptions options_;
  base::UniqueFd output_;
  WeaveSummary summary_;
  std::uint64_t time_ = 1;
};

TEST_F(WeaveDropped, NamesTheProcessWhoseStacksAreCut) {
  add_process(kHostile, "attacker", test::slow_unwind_program());
  add_process(kInnocent, "python3", "");
  for (int i = 0; i < 5; ++i) {
    sample(kHostile, 2000);
    sample(kInnocent, 500);
  }
  weave();
  ASSERT_THAT(summary_.dropped, SizeIs(1));
  EXPECT_EQ(phrase(summary_.dropped[0]),
            "pid 10 (attacker): 5 stacks are cut: the unwind tables of the process take too long");
  EXPECT_EQ(summary_.broken, 5U);
  EXPECT_EQ(depths(kInnocent), std::vector<std::size_t>(5, 500));
}

TEST_F(WeaveDropped, SaysNothingOfInnocentProcesses) {
  add_process(kInnocent, "python3", "");
  sample(kInnocent, 2000);
  weave();
  EXPECT_THAT(summary_.dropped, IsEmpty());
}

// Of a map with any number of names, only those that samples hit are written to the image.
TEST_F(WeaveDropped, KeepsTheNamesThatSamplesHit) {
  add_process(kHostile, "jit", "");
  map(kHostile, kArena, "//anon", 0);
  std::string text;
  for (std::uint64_t i = 0; i < kSize / 16; ++i) {
    text += fmt::format("{:x} 10 function_{}\n", kArena + 16 * i, i);
  }
  context_.open_map = [text](std::uint32_t pid) {
    auto file = test::memory_file(pid == kHostile ? text : std::string{});
    EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
    return file;
  };
  sample(kHostile, 1, kArena + 0x20 + 5);
  weave();
  ASSERT_GE(summary_.images.size(), 1U);
  const auto& image = summary_.images[0].image.bytes;
  const std::string bytes{reinterpret_cast<const char*>(image.data()), image.size()};
  EXPECT_NE(bytes.find("function_2"), std::string::npos);
  EXPECT_EQ(bytes.find("function_3"), std::string::npos);
  EXPECT_LT(bytes.size(), 2000U);
}

TEST(DroppedPhrase, TellsOfDeferredUserParts) {
  EXPECT_EQ(phrase({.pid = 7, .command = "x", .limit = Limit::kDeferredChains, .count = 2}),
            "pid 7 (x): 2 stacks have no user part: it was recorded too long after the sample");
}

}  // namespace
}  // namespace pyinject::weave
