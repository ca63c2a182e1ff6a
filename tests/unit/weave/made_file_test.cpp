// Synthetic files, post-processed: the contents of the result, and what is left when
// post-processing fails.
#include "perfdata/input.hpp"
#include "perfdata/record.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/report/reader.hpp"
#include "support/made_perf_data.hpp"
#include "support/temp_dir.hpp"
#include "weave/frame_history.hpp"
#include "weave/recorded_files.hpp"
#include "weave/weave.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::weave {
namespace {

using testing::ElementsAre;
using testing::Gt;
using testing::SizeIs;
namespace fs = std::filesystem;

class WeaveMadeFile : public testing::Test {
 protected:
  // A sample of a 32-bit process.
  [[nodiscard]] std::string made() const {
    test::MadePerfData data;
    data.events = {test::made_dwarf_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                          PERF_SAMPLE_CALLCHAIN)};
    const std::uint64_t task = 7 | std::uint64_t{7} << 32U;
    data.data =
        test::made_record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
                          test::words(task, 0x8048000, 0x1000, 0, 0, 0, 0, PROT_READ) +
                              test::padded("/bin/made") + test::words(task, 1)) +
        test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
                          test::words(0xffffffff81000000, task, 2, 0, PERF_SAMPLE_REGS_ABI_32,
                                      0xff00, 0xfe00, 0x8048123, 16, 1, 2, 16));
    return directory_.file("made.data", data.bytes());
  }

  std::variant<WeaveSummary, Untouched> weave_to(const std::string& input,
                                                 const std::string& output) {
    options_.input = input;
    options_.output = output;
    options_.image_path = [this](std::uint32_t pid) {
      return directory_ / fmt::format("names-{}", pid);
    };
    RecordedFiles files;
    return weave(options_, context_, files);
  }
  WeaveSummary woven(const std::string& input, const std::string& output) {
    auto result = weave_to(input, output);
    const auto* const why = std::get_if<Untouched>(&result);
    EXPECT_EQ(why, nullptr) << why->why;
    return std::get<WeaveSummary>(std::move(result));
  }
  [[nodiscard]] std::string output() const { return directory_ / "woven.data"; }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : fs::directory_iterator{directory_.path()}) {
      result.push_back(entry.path().filename());
    }
    std::ranges::sort(result);
    return result;
  }

  test::TempDir directory_;
  WeaveOptions options_;
  RecordingContext context_;
};

TEST_F(WeaveMadeFile, ProcessesOf32BitsHaveAMark) {
  const auto input = made();
  const auto summary = woven(input, output());
  EXPECT_EQ(summary.no_information, 1U);
  auto result = std::get<perfdata::Input>(perfdata::Input::open(output()));
  perfdata::Sample sample;
  while (const auto record = result.next()) {
    if (result.parse(*record, sample)) {
      EXPECT_THAT(sample.chain, ElementsAre(PERF_CONTEXT_USER, 0x8048123, Gt(0x10000000U)));
    }
  }
  ASSERT_EQ(summary.images.size(), 1U);
}

// The kernel's records and perf's own report the same losses.
TEST_F(WeaveMadeFile, LossesAreCountedOnce) {
  constexpr std::uint16_t kDroppedByFilter = 1U << 15U;
  const auto lost_of = [&](bool switches, std::uint64_t told_by_perf) {
    test::MadePerfData data;
    data.events = {test::made_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)};
    data.events[0].attr.freq = 1;
    data.events[0].attr.context_switch = switches ? 1 : 0;
    data.data = test::made_record(PERF_RECORD_LOST, 0, test::words(1, 30)) +
                test::made_record(PERF_RECORD_LOST, 0, test::words(1, 12)) +
                test::made_record(PERF_RECORD_LOST_SAMPLES, kDroppedByFilter, test::words(1000)) +
                test::made_record(PERF_RECORD_LOST_SAMPLES, 0, test::words(told_by_perf));
    const auto summary = woven(directory_.file("lost.data", data.bytes()), output());
    EXPECT_TRUE(summary.by_frequency);
    EXPECT_FALSE(summary.by_period);
    const auto read = report::read_profile(output(), {});
    EXPECT_EQ(std::get<report::Profile>(read).lost, summary.lost) << "report says the same";
    return summary.lost;
  };
  EXPECT_EQ(lost_of(false, 7), 42U) << "perf does not count losses in children";
  EXPECT_EQ(lost_of(false, 50), 50U) << "only perf counts losses at the end";
  EXPECT_EQ(lost_of(true, 7), 7U) << "the other lost records were switches";
  EXPECT_EQ(lost_of(true, 0), 42U);
  EXPECT_EQ(lost_of(false, ~std::uint64_t{0}), ~std::uint64_t{0});
}

// The caller of the innermost function is unknown: a function further out comes after the mark.
TEST_F(WeaveMadeFile, FunctionsOfBeforeAreOutsideOfTheMark) {
  FrameHistory history;
  history.begin(
      7, 7, {{.activation = 0x20, .code = 2}, {.activation = 0x10, .code = 1, .outermost = true}},
      true);
  history.name(7, {.number = 1, .qualname = "<module>", .file = "made.py"});
  history.name(7, {.number = 2, .qualname = "work", .file = "made.py"});
  context_ = {.stacks = &history, .interpreters = {{7, {{.evaluator = {{0x900000, 0x901000}}}}}}};
  const auto summary = woven(made(), output());
  EXPECT_EQ(summary.no_information, 1U);
  EXPECT_EQ(summary.extended, 1U);
  auto result = std::get<perfdata::Input>(perfdata::Input::open(output()));
  perfdata::Sample sample;
  while (const auto record = result.next()) {
    if (result.parse(*record, sample)) {
      ASSERT_THAT(sample.chain, ElementsAre(PERF_CONTEXT_USER, 0x8048123, Gt(0x10000000U),
                                            Gt(0x10000000U), Gt(0x10000000U)));
      EXPECT_THAT(std::set(sample.chain.begin(), sample.chain.end()), SizeIs(5U));
    }
  }
}

// perf requests such records whenever stacks are copied.
TEST_F(WeaveMadeFile, MappingsOfDataAreKeptOnlyForSamplesThatHaveAddressesOfData) {
  for (const std::uint64_t address : {0x0U, 0x1234U}) {
    test::MadePerfData data;
    data.events = {test::made_dwarf_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                          PERF_SAMPLE_ADDR | PERF_SAMPLE_CALLCHAIN)};
    const std::uint64_t task = 7 | std::uint64_t{7} << 32U;
    const auto mapping = [&](std::uint64_t at, std::uint16_t kind, const std::string& file) {
      return test::made_record(PERF_RECORD_MMAP2,
                               static_cast<std::uint16_t>(PERF_RECORD_MISC_USER | kind),
                               test::words(task, at, 0x1000, 0, 0, 0, 0, PROT_READ) +
                                   test::padded(file) + test::words(task, 1));
    };
    data.data = mapping(0x8048000, 0, "/bin/made") +
                mapping(0x8050000, PERF_RECORD_MISC_MMAP_DATA, "/bin/data") +
                test::made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
                                  test::words(0xffffffff81000000, task, 2, address, 0, 0, 0));
    const auto summary = woven(directory_.file("data.data", data.bytes()), output());
    EXPECT_EQ(summary.data_mappings, address == 0 ? 1U : 0U);
    auto result = std::get<perfdata::Input>(perfdata::Input::open(output()));
    std::vector<std::string> files;
    while (const auto record = result.next()) {
      if (const auto found = perfdata::parse_mapping(*record)) {
        files.push_back(found->file);
      }
    }
    EXPECT_EQ(std::ranges::count(files, "/bin/made"), 1);
    EXPECT_EQ(std::ranges::count(files, "/bin/data"), address == 0 ? 0 : 1);
  }
}

TEST_F(WeaveMadeFile, ThreadsWithoutRegistersAreAsTheyWere) {
  test::MadePerfData data;
  data.events = {test::made_dwarf_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                        PERF_SAMPLE_CALLCHAIN)};
  data.data = test::made_record(
      PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
      test::words(0xffffffff81000000, 7, 2, 2, PERF_CONTEXT_KERNEL, 0xffffffff81000000, 0, 0));
  const auto summary = woven(directory_.file("perf.data", data.bytes()), output());
  EXPECT_EQ(summary.samples, 1U);
  EXPECT_EQ(summary.unwound, 0U);
  EXPECT_EQ(summary.images.size(), 0U);
}

TEST_F(WeaveMadeFile, CancelledInEitherPassNothingIsLeft) {
  const auto input = made();
  const auto before = test::contents_of(input);
  for (const double when : {0.0, 0.3}) {
    // Make each record take a tenth of a second, so that progress is called for each.
    options_.progress = [when](double done, std::uint64_t /*samples*/) {
      const timespec span{.tv_sec = 0, .tv_nsec = 110'000'000};
      ::nanosleep(&span, nullptr);
      return done < when;
    };
    for (const auto& path : {input, output()}) {
      const auto result = weave_to(input, path);
      ASSERT_TRUE(std::holds_alternative<Untouched>(result));
      EXPECT_TRUE(std::get<Untouched>(result).cancelled);
      EXPECT_TRUE(test::contents_of(input) == before);
      EXPECT_THAT(names(), ElementsAre("made.data"));
    }
  }
}

TEST_F(WeaveMadeFile, LeavesNothingAfterALateFailure) {
  const auto input = made();
  const auto before = test::contents_of(input);
  options_.keep = [](const std::vector<NamedImage>& images,
                     const std::vector<ReplacedFile>& /*replaced*/, const struct stat& /*input*/) {
    EXPECT_EQ(images.size(), 1U);
    throw base::Error{"no room"};
  };
  EXPECT_THROW((void)weave_to(input, input), base::Error);
  EXPECT_TRUE(test::contents_of(input) == before);
  EXPECT_THAT(names(), ElementsAre("made.data"));
}

TEST_F(WeaveMadeFile, KeepsModeAndOwnerInPlace) {
  const auto input = made();
  ASSERT_EQ(::chmod(input.c_str(), 0640), 0);
  const bool root = ::geteuid() == 0;
  ASSERT_TRUE(!root || ::chown(input.c_str(), 12, 34) == 0);
  const base::UniqueFd reader{::open(input.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat before {};
  ASSERT_EQ(::fstat(reader.get(), &before), 0);
  (void)woven(input, input);
  struct stat after {};
  ASSERT_EQ(::stat(input.c_str(), &after), 0);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_EQ(after.st_gid, before.st_gid);
  EXPECT_NE(after.st_ino, before.st_ino);
  struct stat open_still {};
  ASSERT_EQ(::fstat(reader.get(), &open_still), 0);
  EXPECT_EQ(open_still.st_size, before.st_size)
      << "an open descriptor still refers to the old file";
  EXPECT_THAT(names(), ElementsAre("made.data"));
}

TEST_F(WeaveMadeFile, OnlyAFileIsReplaced) {
  const auto input = made();
  const std::string fifo = directory_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW((void)weave_to(input, fifo), base::Error);
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_THROW((void)weave_to(input, directory_.path()), base::Error);
  EXPECT_THROW((void)weave_to(input, directory_ / "no/folder"), base::Error);
  EXPECT_THAT(names(), ElementsAre("fifo", "made.data"));
}

TEST_F(WeaveMadeFile, ALinkStaysALink) {
  const auto input = made();
  const std::string link = directory_ / "link";
  fs::create_symlink("made.data", link);
  const auto size = fs::file_size(input);
  (void)woven(link, link);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_NE(fs::file_size(input), size);
  EXPECT_THAT(names(), ElementsAre("link", "made.data"));
}

}  // namespace
}  // namespace pyinject::weave
