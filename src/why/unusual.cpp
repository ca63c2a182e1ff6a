#include "why/unusual.hpp"

#include "base/text.hpp"
#include "why/phrases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace pyinject::why {

namespace {

class Unusuals {
 public:
  Unusuals(const Recording& recording, const Accounts& accounts, const Totals& totals,
           Report& report)
      : recording_{recording}, accounts_{accounts}, totals_{totals}, report_{report} {}

  void add_descendants();
  void add_gil_hog();
  void add_growth();
  void add_memory();
  void add_scheduling();
  void add_deadlocks();
  void add_gaps();

 private:
  const Recording& recording_;
  const Accounts& accounts_;
  const Totals& totals_;
  Report& report_;
};

void Unusuals::add_descendants() {
  if (descendants_work(recording_) && report_.cause != "nothing" && report_.cause != "child") {
    report_.note("children", descendants_text(recording_, report_.length),
                 descendants_command(recording_));
  }
}

void Unusuals::add_gil_hog() {
  constexpr double kMost = 0.9;
  constexpr double kLittle = 0.1;  // of the length of the recording
  const auto waited = totals_.of(Use::kGil);
  std::map<std::uint32_t, std::uint64_t> sums;
  for (const auto& holder : report_.gil) {
    sums[holder.tid] += holder.time;
  }
  for (const auto& [tid, time] : sums) {
    if (tid != 0 && share(time, waited) >= kMost && share(waited, report_.length) >= kLittle) {
      report_.note("gil_holder",
                   fmt::format("{} has the GIL for {} % of the time that others wait for it",
                               thread_text(recording_, tid), percent(share(time, waited))),
                   next_of(recording_, sample::kNextGil));
    }
  }
}

void Unusuals::add_memory() {
  std::uint64_t major = 0;
  for (const auto& group : report_.groups) {
    major += group.major_faults;
  }
  if (major > 0) {
    const auto rate = static_cast<double>(major) / std::max(seconds(report_.length), 0.001);
    report_.note("major_faults",
                 fmt::format("{} had to wait for a disk, {:.0f} a second",
                             base::counted(major, "page fault"), rate),
                 record_command(recording_, "-e major-faults -c 1 "));
  }
  if (recording_.swapped_kb > 0) {
    report_.note("swap",
                 fmt::format("{} MB of its memory are in swap", recording_.swapped_kb / 1024),
                 "vmstat 1");
  }
}

// In the first line, too: it may be why somebody asks.
void Unusuals::add_growth() {
  constexpr std::uint64_t kGrowth = 1024;  // kB; and a hundredth
  const std::span all{recording_.resident_kb};
  const auto third = all.size() / 3;
  // All of the last third above all of the first one: what comes and goes is no growth.
  if (third == 0 || std::ranges::min(all.last(third)) <= std::ranges::max(all.first(third)) ||
      all.back() < all.front() + std::max(kGrowth, all.front() / 100)) {
    return;
  }
  const auto before = all.front();
  const auto after = all.back();
  const auto rate =
      static_cast<double>(after - before) / 1024 / std::max(seconds(report_.length), 0.001);
  const auto text =
      fmt::format("its memory grew from {} to {} MB (resident), {} MB/s{}", before / 1024,
                  after / 1024, short_number(rate), new_pages_text(recording_, after - before));
  report_.verdict += "; " + text;
  report_.note("memory_growth", text, record_command(recording_, "--what alloc "));
}

void Unusuals::add_scheduling() {
  constexpr double kMuch = 0.1;
  std::uint64_t for_cpu = 0;
  for (const auto& group : report_.groups) {
    for_cpu += group.for_cpu;
  }
  if (report_.cause != "preempted" && share(for_cpu, totals_.busy) >= kMuch &&
      share(for_cpu, report_.length) >= kOfThreadIdle) {
    report_.note("run_queue",
                 fmt::format("its threads were ready to run but without a CPU for {:.1f} s",
                             seconds(for_cpu)),
                 "uptime");
  }
  if (recording_.cpu_limit) {
    report_.note("throttled", limit_text(recording_),
                 fmt::format("grep . {}/cpu.*", base::printable(recording_.cpu_limit->cgroup)));
  }
  constexpr double kStolen = 0.05;
  if (recording_.stolen >= kStolen) {
    report_.note("stolen",
                 fmt::format("the hypervisor gave {} % of this machine's CPU time to others",
                             percent(recording_.stolen)),
                 "vmstat 1");
  }
}

void Unusuals::add_deadlocks() {
  const std::size_t told = report_.cause == "deadlock" ? 1 : 0;
  for (std::size_t i = told; i < recording_.deadlocks.size(); ++i) {
    const auto& deadlock = recording_.deadlocks[i];
    report_.note("deadlock",
                 fmt::format("{} wait for each other", base::counted(deadlock.size(), "thread")),
                 dump_of(recording_));
  }
}

void Unusuals::add_gaps() {
  constexpr double kMuch = 0.1;
  if (recording_.lost > 0) {
    report_.note("lost",
                 fmt::format("{} lost: the shares are less certain",
                             base::counted(recording_.lost, "record")),
                 fmt::format("perf-pyinject why -p {} -F 99", recording_.pid));
  }
  if (const auto lacks = perfdata::incompleteness(accounts_.kinds, false); !lacks.empty()) {
    report_.note("stacks", lacks, dump_of(recording_));
  }
  if (recording_.cut) {
    report_.note("cut", std::string{kCutText},
                 fmt::format("perf-pyinject why -p {} -d 1", recording_.pid));
  }
  if ((recording_.exited || recording_.executed) && report_.cause != end_name(recording_)) {
    report_.note(std::string{end_name(recording_)}, end_text(recording_), end_next(recording_));
  }
  const auto all = std::accumulate(totals_.times.begin(), totals_.times.end(), std::uint64_t{0});
  const auto unknown = totals_.of(Use::kUnknown);
  if (share(unknown, all) >= kMuch) {
    report_.note(
        "unknown",
        fmt::format("{} % of the time is unknown{}", percent(share(unknown, all)),
                    recording_.kernel_names ? "" : ": the kernel hides the names of its functions"),
        recording_.kernel_names ? fmt::format("perf-pyinject why -p {} -d 30", recording_.pid)
                                : "sysctl kernel.kptr_restrict");
  }
}

}  // namespace

void add_unusual(const Recording& recording, const Accounts& accounts, const Totals& totals,
                 Report& report) {
  Unusuals unusuals{recording, accounts, totals, report};
  unusuals.add_descendants();
  unusuals.add_gil_hog();
  unusuals.add_growth();
  unusuals.add_memory();
  unusuals.add_scheduling();
  unusuals.add_deadlocks();
  unusuals.add_gaps();
}

}  // namespace pyinject::why
