#include "why/verdict.hpp"

#include "base/text.hpp"
#include "why/lines.hpp"
#include "why/phrases.hpp"
#include "why/totals.hpp"
#include "why/unusual.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace pyinject::why {

namespace {

using sample::UseFacts;

constexpr double kContended = 0.30;    // of the working time: then it outweighs what it waits for
constexpr double kLoopBlocked = 0.20;  // of the time of the loop's thread
constexpr std::size_t kMostOfDetail = 60;

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

class Judge {
 public:
  Judge(const Recording& recording, const Accounts& accounts, const Totals& totals, Report& report)
      : recording_{recording}, accounts_{accounts}, totals_{totals}, report_{report} {}

  [[nodiscard]] bool judge_standstill();
  void set_cause();
  // Returns whether a blocked loop is the cause.
  bool judge_loops(const std::vector<LoopBlock>& blocks);

 private:
  [[nodiscard]] bool is_idle() const { return why::is_idle(totals_, report_.length); }
  [[nodiscard]] std::string idle_text() const;
  [[nodiscard]] std::string cause_text(const UseFacts& facts, std::string_view words,
                                       const Totals& totals) const;
  [[nodiscard]] Spent most_spent(const std::vector<LoopBlock>& blocks, std::uint32_t tid) const;
  void set(std::string_view cause, std::string verdict, std::string next) {
    report_.cause = cause;
    report_.verdict = std::move(verdict);
    report_.next = std::move(next);
  }
  const Recording& recording_;
  const Accounts& accounts_;
  const Totals& totals_;
  Report& report_;
};

// Returns whether it cannot run.
bool Judge::judge_standstill() {
  const auto pid = recording_.pid;
  const auto& frozen = recording_.frozen;
  if ((recording_.exited || recording_.executed) && !recording_.launched && is_idle()) {
    set(end_name(recording_), end_text(recording_), end_next(recording_));
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
  if (descendants_work(recording_)) {
    text += "; " + descendants_text(recording_, report_.length);
  } else if (recording_.workers != 0) {
    text += fmt::format("; {} {} the same program",
                        base::counted(recording_.workers, "child process", "child processes"),
                        recording_.workers == 1 ? "runs" : "run");
  }
  return text + most_wait(recording_, recording_.awaited, "asyncio task") +
         most_wait(recording_, recording_.switched_away, "greenlet") + servers_text(recording_);
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
    const bool has_workers = descendants_work(recording_) || recording_.workers != 0;
    set("nothing", idle_text(),
        has_workers ? descendants_command(recording_) : dump_of(recording_));
    return;
  }
  const auto& facts = largest(totals_);
  auto text = cause_text(facts, facts.verdict, totals_);
  auto next = next_of(recording_, facts.next);
  if (facts.use == Use::kGil || facts.use == Use::kLock) {
    text += holder_text(recording_, facts.use == Use::kGil ? report_.gil : report_.locks);
  } else if (facts.use == Use::kChild && descendants_work(recording_)) {
    text += "; " + descendants_text(recording_, report_.length);
    next = descendants_command(recording_);
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
      report_.note("event_loop", text, dump_of(recording_));
    }
  }
  return cause;
}

}  // namespace

void judge(const Recording& recording, const Accounts& accounts,
           const std::vector<LoopBlock>& blocks, Report& report) {
  const auto totals = totals_of(recording, accounts);
  Judge judge{recording, accounts, totals, report};
  if (!judge.judge_standstill() && !judge.judge_loops(blocks)) {
    judge.set_cause();
  }
  add_unusual(recording, accounts, totals, report);
}

}  // namespace pyinject::why
