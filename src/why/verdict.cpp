#include "why/verdict.hpp"

#include "base/text.hpp"
#include "why/lines.hpp"
#include "why/phrases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace pyinject::why {

namespace {

using sample::UseFacts;

constexpr double kOfThreadIdle = 0.05;  // of one thread: less work than this is idle
constexpr double kContended = 0.30;     // of the working time: then it outweighs what it waits for
constexpr double kShortage = 0.10;      // of the recording
constexpr double kLoopBlocked = 0.20;   // of the time of the loop's thread
constexpr std::size_t kMostOfDetail = 60;

struct Totals {
  Times times{};
  std::uint64_t busy = 0;
  [[nodiscard]] std::uint64_t of(Use use) const { return times.at(static_cast<std::size_t>(use)); }
};

Totals operator+(Totals one, const Totals& other) {
  std::ranges::transform(one.times, other.times, one.times.begin(), std::plus{});
  one.busy += other.busy;
  return one;
}

// Whether thread TID did nothing but wait for an unnamed local socket, as for the other end of a
// pair: nobody answers there because nobody was asked.
bool waits_for_orders(const Recording& recording, const Accounts& accounts, std::uint32_t tid) {
  const auto waits = of_thread(accounts.waits, tid);
  const auto seen = of_thread(recording.sightings, tid);
  return accounts.threads.at(tid).samples == 0 && waits.size() == 1 &&
         waits.front().use == Use::kNetwork && !seen.empty() &&
         std::ranges::all_of(seen, &Sighting::unnamed);
}

// Such a thread counts only if no other one has work: then it may be the reason.
Totals totals_of(const Recording& recording, const Accounts& accounts) {
  Totals totals;
  Totals waiting;
  for (const auto& [tid, account] : accounts.threads) {
    auto& sum = waits_for_orders(recording, accounts, tid) ? waiting : totals;
    for (std::size_t i = 0; i < sample::kUses; ++i) {
      sum.times.at(i) += account.times.at(i);
      sum.busy += sample::kUseFacts.at(i).idle ? 0 : account.times.at(i);
    }
  }
  return share(totals.busy, recording.end - recording.begin) < kOfThreadIdle ? totals + waiting
                                                                             : totals;
}

// Each wakeup takes some microseconds: a little waiting for a CPU is no shortage, and no work.
Totals without_short_delays(Totals totals, std::uint64_t length) {
  auto& delays = totals.times.at(static_cast<std::size_t>(Use::kPreempted));
  if (share(delays, length) < kShortage) {
    totals.busy -= delays;
    delays = 0;
  }
  return totals;
}

// A contended GIL or lock explains the time of the threads that have it, too.
const UseFacts& largest(const Totals& totals) {
  for (const auto use : {Use::kGil, Use::kLock}) {
    if (share(totals.of(use), totals.busy) >= kContended) {
      return sample::facts(use);
    }
  }
  // If a wait and a CPU take the same time, the wait, which is later in the list.
  return *std::ranges::max_element(
      sample::kUseFacts.rbegin(), sample::kUseFacts.rend(), {},
      [&](const UseFacts& each) { return each.cause.empty() ? 0 : totals.of(each.use); });
}

// The longest place of USE.
Spent longest(const Report& report, Use use) {
  Spent found;
  for (const auto& group : report.groups) {
    for (const auto& each : group.uses) {
      if (each.use == use && !each.top.empty() && each.top.front().time > found.time) {
        found = each.top.front();
      }
    }
  }
  return found;
}

std::string record_command(const Recording& recording, std::string_view options) {
  return fmt::format("perf-pyinject record -p {} --engine bpf {}-- sleep 10", recording.pid,
                     options);
}

// NEXT: UseFacts::next.
std::string next_of(const Recording& recording, std::string_view next) {
  return fmt::format(fmt::runtime(next), recording.pid);
}

std::string dump_of(const Recording& recording) { return next_of(recording, sample::kNextDump); }

class Judge {
 public:
  Judge(const Recording& recording, const Accounts& accounts, Report& report)
      : recording_{recording},
        accounts_{accounts},
        totals_{without_short_delays(totals_of(recording, accounts), report.length)},
        report_{report} {}

  [[nodiscard]] bool judge_standstill();
  void set_cause();
  void add_growth();
  // Returns whether a blocked loop is the cause.
  bool judge_loops(const std::vector<LoopBlock>& blocks);
  void add_descendants();
  void add_gil_hog();
  void add_memory();
  void add_scheduling();
  void add_deadlocks();
  void add_gaps();

 private:
  // Of a process that ended before the recording.
  [[nodiscard]] std::string_view end_name() const {
    return recording_.executed ? "executed" : "exited";
  }
  [[nodiscard]] std::string end_text() const {
    return fmt::format("it {} after {:.1f} s of the recording",
                       recording_.executed ? "executed another program" : "exited",
                       seconds(report_.length));
  }
  [[nodiscard]] std::string end_next() const {
    return recording_.executed ? fmt::format("perf-pyinject why -p {}", recording_.pid) : "";
  }
  [[nodiscard]] bool is_idle() const { return share(totals_.busy, report_.length) < kOfThreadIdle; }
  [[nodiscard]] std::string idle_text() const;
  [[nodiscard]] std::string cause_text(const UseFacts& facts, std::string_view words,
                                       const Totals& totals) const;
  [[nodiscard]] std::uint64_t on_cpu_of_descendants() const {
    return static_cast<std::uint64_t>(recording_.descendants.on_cpu.count());
  }
  [[nodiscard]] bool descendants_work() const;
  [[nodiscard]] std::string descendants_command() const {
    return fmt::format("perf-pyinject why -p {} --children", recording_.pid);
  }
  [[nodiscard]] Spent most_spent(const std::vector<LoopBlock>& blocks, std::uint32_t tid) const;
  void set(std::string_view cause, std::string verdict, std::string next) {
    report_.cause = cause;
    report_.verdict = std::move(verdict);
    report_.next = std::move(next);
  }
  void add(std::string name, std::string text, std::string next) {
    report_.unusual.push_back(
        {.name = std::move(name), .text = std::move(text), .next = std::move(next)});
  }
  const Recording& recording_;
  const Accounts& accounts_;
  const Totals totals_;
  Report& report_;
};

// Returns whether it cannot run.
bool Judge::judge_standstill() {
  const auto pid = recording_.pid;
  const auto& frozen = recording_.frozen;
  if ((recording_.exited || recording_.executed) && !recording_.launched && is_idle()) {
    set(end_name(), end_text(), end_next());
  } else if (!frozen.empty()) {
    set("stopped", fmt::format("frozen by its cgroup {} (cgroup.freeze)", base::printable(frozen)),
        fmt::format("echo 0 > {}/cgroup.freeze", base::printable(frozen)));
  } else if (recording_.stopped) {
    set("stopped", "stopped by a signal (SIGSTOP, Ctrl-Z)", fmt::format("kill -CONT {}", pid));
  } else if (recording_.traced) {
    set("stopped", "stopped by its debugger", fmt::format("grep TracerPid /proc/{}/status", pid));
  } else if (!recording_.deadlocks.empty()) {
    std::string threads;
    for (const auto tid : recording_.deadlocks.front()) {
      threads += (threads.empty() ? "" : ", ") + waiter_text(recording_, tid);
    }
    set("deadlock", fmt::format("deadlock: {} wait for each other", threads), dump_of(recording_));
  } else {
    return false;
  }
  return true;
}

// What its threads do instead of working.
std::string Judge::idle_text() const {
  std::uint64_t all = 0;
  auto most = Use::kSleep;
  for (std::size_t i = 0; i < sample::kUses; ++i) {
    const auto use = static_cast<Use>(i);
    all += totals_.of(use);
    most = sample::facts(use).idle && totals_.of(use) > totals_.of(most) ? use : most;
  }
  auto text = fmt::format("idle: its threads have work for {:.1f} of {:.1f} s",
                          seconds(totals_.busy), seconds(report_.length));
  if (totals_.of(most) != 0) {
    text += fmt::format("; {} % of their time: {}", percent(share(totals_.of(most), all)),
                        sample::facts(most).text);
  }
  if (descendants_work()) {
    text += "; " + descendants_text(recording_, report_.length);
  } else if (recording_.workers != 0) {
    text += fmt::format("; {} {} the same program",
                        base::counted(recording_.workers, "child process", "child processes"),
                        recording_.workers == 1 ? "runs" : "run");
  }
  return text + most_wait(recording_, recording_.awaited, "asyncio task") +
         most_wait(recording_, recording_.switched_away, "greenlet") + servers_text(recording_);
}

bool Judge::descendants_work() const {
  return share(on_cpu_of_descendants(), report_.length) >= kOfThreadIdle;
}

// WORDS: of the verdict of FACTS.
std::string Judge::cause_text(const UseFacts& facts, std::string_view words,
                              const Totals& totals) const {
  const auto place = longest(report_, facts.use);
  return fmt::format("{} for {} % of their working time, mostly in {}{}", words,
                     percent(share(totals.of(facts.use), totals.busy)), short_place(place),
                     sample::has_detail(facts.use) && !place.detail.empty()
                         ? fmt::format(" ({})", base::printable(place.detail, kMostOfDetail))
                         : "");
}

void Judge::set_cause() {
  if (is_idle()) {
    const bool has_workers = descendants_work() || recording_.workers != 0;
    set("nothing", idle_text(), has_workers ? descendants_command() : dump_of(recording_));
    return;
  }
  const auto& facts = largest(totals_);
  auto text = cause_text(facts, facts.verdict, totals_);
  auto next = next_of(recording_, facts.next);
  if (facts.use == Use::kGil || facts.use == Use::kLock) {
    text += holder_text(recording_, facts.use == Use::kGil ? report_.gil : report_.locks);
  } else if (facts.use == Use::kChild && descendants_work()) {
    text += "; " + descendants_text(recording_, report_.length);
    next = descendants_command();
  } else if (facts.use == Use::kPreempted) {
    std::uint64_t own = 0;
    for (const auto& [tid, account] : accounts_.threads) {
      own += account.on_cpu;
    }
    text += recording_.cpu_limit ? "; " + limit_text(recording_)
                                 : users_text(recording_, own, report_.length);
    auto rest = totals_;
    rest.busy -= std::exchange(rest.times.at(static_cast<std::size_t>(Use::kPreempted)), 0);
    if (share(rest.busy, report_.length) >= kOfThreadIdle) {
      const auto& other = largest(rest);
      text += "; besides " +
              cause_text(other, other.verdict.substr(0, other.verdict.find(':')), totals_);
      next = next_of(recording_, other.next);
    }
  }
  set(facts.cause, std::move(text), std::move(next));
}

// Where the callbacks of thread TID spent most of the time of BLOCKS: the function, and in it the
// line.
Spent Judge::most_spent(const std::vector<LoopBlock>& blocks, std::uint32_t tid) const {
  std::map<std::pair<std::string, std::string>, std::uint64_t> functions;
  std::map<std::uint32_t, Spent> stacks;
  for (const auto& block : blocks) {
    if (block.tid != tid) {
      continue;
    }
    for (const auto& [stack, time] : block.spent) {
      auto& spent = stacks.try_emplace(stack, spent_at(recording_, stack, 0)).first->second;
      spent.time += time;
      functions[{spent.function, spent.file}] += time;
    }
  }
  const auto of_function = [&](const Spent& spent) {
    return functions.at({spent.function, spent.file});
  };
  Spent most;
  for (const auto& [stack, spent] : stacks) {
    const bool more = most.function.empty() || std::pair{of_function(spent), spent.time} >
                                                   std::pair{of_function(most), most.time};
    most = more ? spent : most;
  }
  return most;
}

bool Judge::judge_loops(const std::vector<LoopBlock>& blocks) {
  std::map<std::uint32_t, std::uint64_t> sums;
  for (const auto& block : blocks) {
    sums[block.tid] += block.length();
  }
  bool cause = false;
  for (const auto& [tid, sum] : sums) {
    const auto worst = std::ranges::max_element(blocks, {}, [tid = tid](const LoopBlock& block) {
      return block.tid == tid ? block.length() : 0;
    });
    const auto wall = accounts_.threads.at(tid).wall;
    const auto text =
        fmt::format("{} keep {} from {} for {} % of the time, up to {:.0f} ms, in {}",
                    worst->hub ? "greenlets" : "callbacks", thread_text(recording_, tid),
                    worst->hub ? "gevent's hub" : "its event loop", percent(share(sum, wall)),
                    seconds(worst->length()) * 1e3, short_place(most_spent(blocks, tid)));
    if (!cause && share(sum, wall) >= kLoopBlocked) {
      cause = true;
      set("event_loop", "blocked event loop: " + text, dump_of(recording_));
    } else {
      add("event_loop", text, dump_of(recording_));
    }
  }
  return cause;
}

void Judge::add_descendants() {
  if (descendants_work() && report_.cause != "nothing" && report_.cause != "child") {
    add("children", descendants_text(recording_, report_.length), descendants_command());
  }
}

void Judge::add_gil_hog() {
  constexpr double kMost = 0.9;
  constexpr double kLittle = 0.1;  // of the length of the recording
  const auto waited = totals_.of(Use::kGil);
  std::map<std::uint32_t, std::uint64_t> sums;
  for (const auto& holder : report_.gil) {
    sums[holder.tid] += holder.time;
  }
  for (const auto& [tid, time] : sums) {
    if (tid != 0 && share(time, waited) >= kMost && share(waited, report_.length) >= kLittle) {
      add("gil_holder",
          fmt::format("{} has the GIL for {} % of the time that others wait for it",
                      thread_text(recording_, tid), percent(share(time, waited))),
          next_of(recording_, sample::kNextGil));
    }
  }
}

void Judge::add_memory() {
  std::uint64_t major = 0;
  for (const auto& group : report_.groups) {
    major += group.major_faults;
  }
  if (major > 0) {
    const auto rate = static_cast<double>(major) / std::max(seconds(report_.length), 0.001);
    add("major_faults",
        fmt::format("{} had to wait for a disk, {:.0f} a second",
                    base::counted(major, "page fault"), rate),
        record_command(recording_, "-e major-faults -c 1 "));
  }
  if (recording_.swapped_kb > 0) {
    add("swap", fmt::format("{} MB of its memory are in swap", recording_.swapped_kb / 1024),
        "vmstat 1");
  }
}

// In the first line, too: it may be why somebody asks.
void Judge::add_growth() {
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
  add("memory_growth", text, record_command(recording_, "--what alloc "));
}

void Judge::add_scheduling() {
  constexpr double kMuch = 0.1;
  std::uint64_t for_cpu = 0;
  for (const auto& group : report_.groups) {
    for_cpu += group.for_cpu;
  }
  if (report_.cause != "preempted" && share(for_cpu, totals_.busy) >= kMuch &&
      share(for_cpu, report_.length) >= kOfThreadIdle) {
    add("run_queue",
        fmt::format("its threads were ready to run but without a CPU for {:.1f} s",
                    seconds(for_cpu)),
        "uptime");
  }
  if (recording_.cpu_limit) {
    add("throttled", limit_text(recording_),
        fmt::format("grep . {}/cpu.*", base::printable(recording_.cpu_limit->cgroup)));
  }
  constexpr double kStolen = 0.05;
  if (recording_.stolen >= kStolen) {
    add("stolen",
        fmt::format("the hypervisor gave {} % of this machine's CPU time to others",
                    percent(recording_.stolen)),
        "vmstat 1");
  }
}

void Judge::add_deadlocks() {
  const std::size_t told = report_.cause == "deadlock" ? 1 : 0;
  for (std::size_t i = told; i < recording_.deadlocks.size(); ++i) {
    const auto& deadlock = recording_.deadlocks[i];
    add("deadlock", fmt::format("{} wait for each other", base::counted(deadlock.size(), "thread")),
        dump_of(recording_));
  }
}

void Judge::add_gaps() {
  constexpr double kMuch = 0.1;
  if (recording_.lost > 0) {
    add("lost",
        fmt::format("{} lost: the shares are less certain",
                    base::counted(recording_.lost, "record")),
        fmt::format("perf-pyinject why -p {} -F 99", recording_.pid));
  }
  if (const auto lacks = perfdata::incompleteness(accounts_.kinds, false); !lacks.empty()) {
    add("stacks", lacks, dump_of(recording_));
  }
  if (recording_.cut) {
    add("cut", std::string{kCutText}, fmt::format("perf-pyinject why -p {} -d 1", recording_.pid));
  }
  if ((recording_.exited || recording_.executed) && report_.cause != end_name()) {
    add(std::string{end_name()}, end_text(), end_next());
  }
  const auto all = std::accumulate(totals_.times.begin(), totals_.times.end(), std::uint64_t{0});
  const auto unknown = totals_.of(Use::kUnknown);
  if (share(unknown, all) >= kMuch) {
    add("unknown",
        fmt::format("{} % of the time is unknown{}", percent(share(unknown, all)),
                    recording_.kernel_names ? "" : ": the kernel hides the names of its functions"),
        recording_.kernel_names ? fmt::format("perf-pyinject why -p {} -d 30", recording_.pid)
                                : "sysctl kernel.kptr_restrict");
  }
}

}  // namespace

void judge(const Recording& recording, const Accounts& accounts,
           const std::vector<LoopBlock>& blocks, Report& report) {
  Judge judge{recording, accounts, report};
  if (!judge.judge_standstill() && !judge.judge_loops(blocks)) {
    judge.set_cause();
  }
  judge.add_descendants();
  judge.add_gil_hog();
  judge.add_growth();
  judge.add_memory();
  judge.add_scheduling();
  judge.add_deadlocks();
  judge.add_gaps();
}

}  // namespace pyinject::why
