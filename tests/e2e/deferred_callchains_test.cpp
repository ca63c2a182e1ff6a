// A recording of `perf record --call-graph fp,defer` (linux 6.19), synthetic: what each perf shows
// of it after post-processing.
#include "e2e/perf_recording.hpp"
#include "pyinject/weave/symbol_image.hpp"
#include "support/child_process.hpp"
#include "support/find_perf.hpp"
#include "support/made_perf_data.hpp"
#include "support/paths.hpp"
#include "support/temp_dir.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace pyinject::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

// Never a process: pid_max is at most 4194304.
constexpr std::uint32_t kPid = 4194305;
constexpr std::uint32_t kTid = 4194306;
constexpr std::uint64_t kCode = 0x7f0000010000;
constexpr std::uint64_t kKernel = 0xffffffff81000010;
constexpr std::uint64_t kLeaf = kCode + 8;
constexpr std::uint64_t kCaller = kCode + 40;
constexpr std::uint64_t kOther = kCode + 72;

const std::array image_symbols = {
    weave::ImageSymbol{.address = kCode, .size = 32, .name = "leaf"},
    weave::ImageSymbol{.address = kCode + 32, .size = 32, .name = "caller"},
    weave::ImageSymbol{.address = kCode + 64, .size = 32, .name = "other"},
};
const std::array image_ranges = {weave::AddressRange{kCode, kCode + 0x1000}};

std::uint64_t task(std::uint32_t tid) { return kPid | std::uint64_t{tid} << 32U; }

std::string sample(std::uint64_t time, std::uint32_t tid, std::uint64_t cookie) {
  return made_record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL,
                     words(kKernel, task(tid), time, 4, PERF_CONTEXT_KERNEL, kKernel,
                           perfdata::kContextUserDeferred, cookie));
}

std::string user_part(std::uint64_t time, std::uint32_t tid, std::uint64_t cookie,
                      const std::vector<std::uint64_t>& addresses) {
  return made_deferred_chain(cookie, addresses, words(task(tid), time));
}

class DeferredCallchains : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] RunResult run(std::vector<std::string> command) const {
    RunOptions options;
    options.child.env["HOME"] = directory_.path();  // perf's build-id cache
    options.deadline = 60s;
    return test::run(command, options);
  }
  [[nodiscard]] std::string script(const std::string& data) const {
    const auto result =
        run({perf_, "script", "-i", data, "-F", "tid,time,ip,sym", "--show-lost-events"});
    EXPECT_EQ(result.status, ExitStatus{}) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("nknown")));
    return result.out;
  }
  // Two threads; the second one is switched to another processor and loses a record.
  [[nodiscard]] std::string made() const {
    const auto image = weave::make_symbol_image(image_symbols, image_ranges);
    const auto file = directory_.file(
        "image", {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()});
    MadePerfData data;
    data.attr_size = PERF_ATTR_SIZE_VER7;  // later kernels' headers have more than all perfs read
    data.events = {
        made_event(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN)};
    auto& attr = data.events[0].attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_period = 1'000'000;
    attr.mmap = attr.mmap2 = attr.comm = 1;
    defer_user_chains(data.events[0]);
    data.data =
        made_record(PERF_RECORD_COMM, 0,
                    packed(kPid, kPid) + padded("made") + words(task(kPid), 0)) +
        made_record(PERF_RECORD_COMM, 0,
                    packed(kPid, kTid) + padded("made") + words(task(kPid), 0)) +
        made_record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER,
                    words(task(kPid), kCode, 0x1000, kCode, 0, 0, 0) +
                        packed(std::uint32_t{PROT_READ | PROT_EXEC}, std::uint32_t{MAP_PRIVATE}) +
                        padded(file) + words(task(kPid), 0)) +
        sample(1'000'000'000, kPid, 1) + sample(2'000'000'000, kPid, 1) +
        user_part(5'000'000'000, kTid, 2, {kOther}) + sample(3'000'000'000, kTid, 2) +
        made_record(perfdata::kFinishedRound, 0, "") +
        user_part(6'000'000'000, kPid, 1, {kLeaf, kCaller}) + sample(7'000'000'000, kTid, 3) +
        user_part(8'000'000'000, kTid, 4, {kOther}) + made_record(perfdata::kFinishedRound, 0, "");
    return directory_.file("perf.data", data.bytes());
  }

  std::string perf_;
  TempDir directory_;

 private:
  void SetUp() override {
    const auto found = find_perf(GetParam());
    if (!found) {
      GTEST_SKIP() << "no " << GetParam() << " (scripts/pythons)";
    }
    perf_ = *found;
  }
};

using DeferredCallchainsUnprocessed = DeferredCallchains;

// The frames of each sample, by time.
std::vector<std::string> chains_of(const std::string& script) {
  std::vector<std::string> chains;
  std::string chain;
  std::size_t at = 0;
  while (at < script.size()) {
    const auto end = std::min(script.find('\n', at), script.size());
    const auto line = script.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("\t")) {
      const auto first = line.find_first_not_of(" \t");
      chain += line.substr(line.find(' ', first) + 1) + ";";
    } else if (line.empty() && !chain.empty()) {
      chains.push_back(chain);
      chain.clear();
    }
  }
  return chains;
}

TEST_P(DeferredCallchains, AreWholeAfterPostProcessing) {
  const auto input = made();
  const auto output = directory_ / "woven.data";
  const auto woven = run({tool(), "weave", "--perf", perf_, input, "-o", output});
  ASSERT_EQ(woven.status, ExitStatus{}) << woven.err;
  EXPECT_THAT(woven.err, HasSubstr("1 stack is incomplete: 1 without a deferred user part "
                                   "([no deferred callchain])"));
  const auto text = script(output);
  EXPECT_THAT(chains_of(text),
              testing::ElementsAre("[unknown];leaf;caller;", "[unknown];leaf;caller;",
                                   "[unknown];other;", "[unknown];[no deferred callchain];"))
      << text;
  const auto dump = run({perf_, "script", "-D", "-i", output});
  EXPECT_EQ(dump.status, ExitStatus{}) << dump.err;
  EXPECT_THAT(dump.out, Not(HasSubstr("DEFERRED")));
}

// perf merges the callchains when it reads them. Without the record, it shows the cookie as an
// address.
TEST_P(DeferredCallchainsUnprocessed, AreTheSameThatPerfMerges) {
  auto merged = chains_of(script(made()));
  std::ranges::sort(merged);
  EXPECT_THAT(merged, testing::ElementsAre("[unknown];[unknown];", "[unknown];leaf;caller;",
                                           "[unknown];leaf;caller;", "[unknown];other;"));
}

INSTANTIATE_TEST_SUITE_P(Perfs, DeferredCallchains, testing::Values("perf", "perf6.12", "perf7"),
                         [](const auto& one) {
                           std::string text = one.param;
                           std::ranges::replace(text, '.', '_');
                           return text;
                         });
INSTANTIATE_TEST_SUITE_P(Perfs, DeferredCallchainsUnprocessed, testing::Values("perf7"));

}  // namespace
}  // namespace pyinject::test
