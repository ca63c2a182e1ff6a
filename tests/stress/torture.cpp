#include "stress/torture.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/tasks.hpp"
#include "pyinject/base/error.hpp"
#include "support/paths.hpp"
#include "support/patience.hpp"
#include "support/temp_dir.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <functional>
#include <variant>

namespace pyinject::test {

namespace {

using base::Deadline;
using python::Reason;
using python::Refusal;
using python::TrampolineState;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Deadline of an injection that may be refused: whether it succeeds depends on the target's state.
constexpr milliseconds kImpatience{300};

void nap(nanoseconds span) {
  const auto whole = std::chrono::duration_cast<seconds>(span);
  const timespec time{.tv_sec = whole.count(), .tv_nsec = (span - whole).count()};
  ::nanosleep(&time, nullptr);
}

// For a program that ends by itself: 0 to 39 ms, the same in each run.
std::string time_to_live(int life) { return fmt::format("{}", (life * 7 % 40) / 1000.0); }

// The reason in the tool's last message: "... (reason_name): ...".
std::optional<Reason> reason_in(std::string_view text) {
  for (const auto reason : python::all_reasons()) {
    if (text.find(fmt::format("({})", python::name(reason))) != std::string_view::npos) {
      return reason;
    }
  }
  return std::nullopt;
}

}  // namespace

bool Torture::can_be_looked_at() const {
  return kind_.care != Care::kMainGone && kind_.care != Care::kEndsItself;
}

void Torture::live(int injections, int recordings) {
  ++tally_.lives;
  try {
    StressedTarget target{interpreter_, kind_};
    std::optional<Snapshot> before;
    if (can_be_looked_at()) {
      before = take_snapshot(target.pid());
    }
    target.go(time_to_live(tally_.lives));
    const auto begin = steady_clock::now();
    work(target, injections, recordings);
    worked_ += steady_clock::now() - begin;
    // Programs that exit with busy daemon threads do so both on and off.
    const bool ends_on = kind_.care == Care::kDaemonThreads && tally_.lives % 2 == 1;
    if (ends_on) {
      bool on = false;
      (void)inject(target, on);
    }
    finish(target, before, tally_, ends_on);
  } catch (const base::Error& error) {
    tally_.add(Harm::kHang, error.what());
  }
}

void Torture::live_without_tool() {
  ++control_.lives;
  try {
    const bool exit_counts = kind_.care == Care::kDaemonThreads;
    StressedTarget target{
        interpreter_, kind_,
        exit_counts ? std::vector<std::string>{"-X", "perf"} : std::vector<std::string>{}};
    target.go(time_to_live(control_.lives));
    nap(worked_ / std::max(tally_.lives, 1));
    finish(target, std::nullopt, control_, exit_counts);
  } catch (const base::Error& error) {
    control_.add(Harm::kHang, error.what());
  }
}

void Torture::work(StressedTarget& target, int injections, int recordings) {
  if (kind_.care != Care::kEndsItself && !works_on(target)) {
    return;
  }
  bool on = false;
  for (int i = 0; i < injections; ++i) {
    if (kind_.care == Care::kEndsItself && !target.alive()) {
      return;
    }
    const bool same = !inject(target, on);
    if (same && kind_.care == Care::kEndsItself) {
      return;  // would be refused until it is gone
    }
    // Some injections follow each other immediately, after others the program works first.
    const bool rest = kind_.slow ? i == 0 : i % 4 == 0;
    if (kind_.care != Care::kEndsItself && (same || rest) && !works_on(target)) {
      return;
    }
  }
  for (int i = 0; i < recordings; ++i) {
    switch_off(target, on);
    record(target);
    if (!works_on(target)) {
      return;
    }
  }
  switch_off(target, on);
  look_at_state(target);
}

bool Torture::works_on(StressedTarget& target) {
  const auto rounds = target.rounds();
  if (target.works_on(rounds)) {
    return true;
  }
  if (target.alive()) {
    tally_.add(Harm::kHang, "it does not go on: " + target.whereabouts());
  }
  return false;
}

std::optional<Refusal> Torture::try_inject(base::Pid pid, bool on) {
  auto detection = detector_->detect(pid);
  if (const auto* refused = std::get_if<python::Refused>(&detection)) {
    return refused->refusal;
  }
  const auto& target = std::get<python::Target>(detection);
  const nanoseconds deadline = kind_.may.empty() ? nanoseconds{kPatience} : kImpatience;
  const auto reason = [](auto result) -> std::optional<Refusal> {
    if (auto* refusal = std::get_if<Refusal>(&result)) {
      return std::move(*refusal);
    }
    return std::nullopt;
  };
  return on ? reason(injector_->activate(target, {.owner = {}, .deadline = deadline}))
            : reason(injector_->deactivate(target, {.deadline = deadline, .only_of = {}}));
}

Torture::Outcome Torture::book(const std::optional<Refusal>& refusal, bool on) {
  const auto must = kind_.must_for(interpreter_.minor);
  if (!refusal) {
    if (must) {
      tally_.add(Harm::kToolError, "it was not refused");
    }
    return Outcome::kDone;
  }
  if (must == refusal->reason || std::ranges::count(kind_.may, refusal->reason) != 0) {
    ++tally_.refused[std::string{python::name(refusal->reason)}];
    return Outcome::kRefused;
  }
  tally_.add(Harm::kToolError,
             fmt::format("{}: {}", on ? "on" : "off", python::describe(*refusal)));
  return Outcome::kError;
}

// True if it was carried out; then ON is updated.
bool Torture::inject(StressedTarget& target, bool& on) {
  try {
    const auto refusal = try_inject(target.pid(), !on);
    if (book(refusal, !on) == Outcome::kDone) {
      ++tally_.injections;
      on = !on;
      return true;
    }
    const auto state = state_of(target.pid());
    if (!on && state && state != TrampolineState::kOff) {
      tally_.add(Harm::kLeftover, fmt::format("it is {} although it was refused: {}",
                                              python::name(*state), refusal->found));
    }
  } catch (const std::exception& error) {
    tally_.add(Harm::kToolError, fmt::format("exception: {}", error.what()));
  }
  return false;
}

// nullopt: currently unknown.
std::optional<TrampolineState> Torture::state_of(base::Pid pid) {
  const auto detection = detector_->detect(pid);
  const auto* found = std::get_if<python::Target>(&detection);
  return found == nullptr ? std::nullopt : std::optional{found->state};
}

// Repeats an attempt that may be refused.
void Torture::switch_off(StressedTarget& target, bool& on) {
  const auto deadline = Deadline::after(kPatience);
  while (on && target.alive() && !deadline.expired() && !inject(target, on)) {
    nap(milliseconds{1});
  }
}

void Torture::record(StressedTarget& target) {
  ++tally_.recordings;
  const TempDir directory;
  const auto result = run({tool(), "record", "-e", "cpu-clock", "-o", directory / "perf.data", "-p",
                           std::to_string(target.pid().value()), "--", "sleep", "0.5"},
                          {.child = {}, .input = "", .deadline = seconds{60}});
  const auto must = kind_.must_for(interpreter_.minor);
  if (result.status == ExitStatus{} && !must) {
    look_for_children(target.pid());
    look_at_state(target);
    return;
  }
  const auto reason = reason_in(result.err);
  if (result.status.code == 125 && reason &&
      (must == reason || std::ranges::count(kind_.may, *reason) != 0)) {
    ++tally_.refused[fmt::format("record: {}", python::name(*reason))];
    return;
  }
  tally_.add(Harm::kToolError, fmt::format("record: exit status {}, signal {}: {}",
                                           result.status.code, result.status.signal, result.err));
}

// Checks the children that it forked during the recording.
void Torture::look_for_children(base::Pid pid) {
  for (const auto thread : procfs::list_tasks(pid)) {
    const auto text =
        base::read_file(fmt::format("/proc/{}/task/{}/children", pid.value(), thread.value()))
            .value_or("");
    for (const auto word : base::split(base::trim(text), ' ')) {
      const auto child = base::parse_number<pid_t>(word);
      if (!child) {
        continue;
      }
      const auto state = state_of(base::Pid{*child});
      if (state && state != TrampolineState::kOff) {
        tally_.add(Harm::kLeftover, fmt::format("its child {} is {} after a recording", *child,
                                                python::name(*state)));
      }
    }
  }
}

void Torture::look_at_state(StressedTarget& target) {
  const auto state = state_of(target.pid());
  if (state && state != TrampolineState::kOff) {
    tally_.add(Harm::kLeftover, fmt::format("it is {}", python::name(*state)));
  }
  const bool stops = kind_.care == Care::kStops;
  for (auto& line : left_in_threads(target.pid(), stops)) {
    tally_.add(Harm::kLeftover, std::move(line));
  }
}

void Torture::finish(StressedTarget& target, const std::optional<Snapshot>& before, Tally& tally,
                     bool may_be_on) {
  target.stop();
  const auto verdict = target.verdict();
  if (!verdict) {
    if (target.alive()) {
      tally.add(Harm::kHang, "it does not come to its end: " + target.whereabouts());
      return;
    }
    see_end(target, tally);
    tally.add(Harm::kWrong, "it ended without a verdict");
    return;
  }
  if (!verdict->starts_with("right ")) {
    tally.add(Harm::kWrong, *verdict);
  } else if (verdict->ends_with(" on") && !may_be_on && kind_.care != Care::kEndsItself) {
    tally.add(Harm::kLeftover, "it says that it is on");
  }
  if (before && kind_.care != Care::kExecutes) {
    for (auto& line : left_in_process(*before, take_snapshot_after_exits(target.pid()))) {
      tally.add(Harm::kLeftover, std::move(line));
    }
  }
  // After an exec, the new program image appends to the map of the old one.
  if (kind_.care != Care::kExecutes) {
    for (auto& line : wrong_in_map(target.map_path())) {
      tally.add(Harm::kLeftover, std::move(line));
    }
  }
  see_end(target, tally);
}

void Torture::see_end(StressedTarget& target, Tally& tally) const {
  const auto status = target.end();
  if (!status) {
    tally.add(Harm::kHang, "it does not exit: " + target.whereabouts());
    return;
  }
  if (status->signal != 0) {
    // Without the tool, CPython 3.12 and 3.13 crash by themselves if the trampoline was on.
    if (&tally == &control_ && kind_.care == Care::kDaemonThreads && interpreter_.minor < 14) {
      ++tally.exit_crashes;
    } else {
      tally.add(Harm::kCrash, target.whereabouts());
    }
  } else if (status->code != 0 || !target.errors().empty()) {
    tally.add(Harm::kWrong, target.whereabouts());
  }
}

}  // namespace pyinject::test
