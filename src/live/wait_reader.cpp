#include "live/wait_reader.hpp"

#include "base/clock.hpp"
#include "procfs/tasks.hpp"
#include "procfs/usage.hpp"

#include <algorithm>
#include <ctime>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::live {

namespace {

using std::chrono::nanoseconds;

// Above the numbers of the BPF program, which count from 1.
constexpr std::uint32_t kFirstNumber = std::uint32_t{1} << 31U;
// Reading is followed by a pause so many times as long.
constexpr int kPauseOfWaits = 299;
// The display does not stand still for longer than this.
constexpr std::chrono::milliseconds kMostOfTurn{20};
constexpr std::size_t kMostThreads = 16384;  // of a process
constexpr std::size_t kMostJudged = 1024;    // in one reading

bool waits(char state) { return state == 'S' || state == 'D'; }

}  // namespace

WaitReader::WaitReader(std::function<void(sample::Code)> code)
    : functions_{std::move(code), kFirstNumber} {}

void WaitReader::add(const python::Target& target) {
  processes_.erase(target.id.pid);
  auto reader = python::StackReader::of(target);
  if (auto* const readable = std::get_if<python::StackReader>(&reader)) {
    processes_.try_emplace(target.id.pid, Process{.reader = std::move(*readable),
                                                  .judge = WaitJudge::of(target),
                                                  .told = base::time_by(CLOCK_MONOTONIC)});
  }
}

void WaitReader::tell(Process& process, const Receiver& receiver) {
  const auto now = base::time_by(CLOCK_MONOTONIC);
  const auto length = now - std::exchange(process.told, now);
  for (const auto& [tid, waiting] : process.waiting) {
    receiver(waiting.stack, waiting.use, length);
  }
}

void WaitReader::collect(const Receiver& receiver) {
  if (processes_.empty() || base::time_by(CLOCK_MONOTONIC) < next_) {
    return;
  }
  const auto begin = base::time_by(CLOCK_THREAD_CPUTIME_ID);
  nanoseconds cost{};
  for (std::size_t i = 0; i < processes_.size() && cost < kMostOfTurn; ++i) {
    auto process = processes_.upper_bound(latest_);
    process = process == processes_.end() ? processes_.begin() : process;
    latest_ = process->first;
    tell(process->second, receiver);
    read(process->first, process->second);
    cost = base::time_by(CLOCK_THREAD_CPUTIME_ID) - begin;
  }
  next_ = base::time_by(CLOCK_MONOTONIC) + std::max<nanoseconds>(kMostOften, kPauseOfWaits * cost);
}

void WaitReader::end_interval(const Receiver& receiver) {
  for (auto& [pid, process] : processes_) {
    tell(process, receiver);
  }
}

void WaitReader::read(base::Pid pid, Process& process) {
  std::vector<base::Tid> tids;
  std::map<base::Tid, Waiting> waiting;
  for (const auto tid : procfs::list_tasks(pid)) {
    const auto usage = procfs::read_thread_usage(pid, tid);
    if (!usage || !waits(usage->state) || waiting.size() >= kMostThreads) {
      continue;
    }
    const auto before = process.waiting.find(tid);
    if (before != process.waiting.end() && before->second.settled && usage->arrivals != 0 &&
        before->second.arrivals == usage->arrivals) {
      waiting.insert(*before);  // it has not run since
      continue;
    }
    tids.push_back(tid);
    waiting[tid] = {.stack = {.pid = static_cast<std::uint32_t>(pid.value()),
                              .tid = static_cast<std::uint32_t>(tid.value())},
                    .arrivals = usage->arrivals};
  }
  const auto stacks = tids.empty() ? std::vector<python::ThreadStack>{} : process.reader.read(tids);
  for (const auto& stack : stacks) {
    const auto found = waiting.find(stack.tid);
    if (found != waiting.end()) {
      found->second.settled = stack.settled;
    }
    if (found != waiting.end() && stack.settled) {
      found->second.stack.frames = process.frames.of(stack, process.reader, functions_);
    }
  }
  if (process.judge) {
    const auto judged = std::span{tids}.first(std::min(tids.size(), kMostJudged));
    for (const auto tid : std::span{tids}.subspan(judged.size())) {
      waiting[tid].settled = false;  // it is read again
    }
    for (const auto& [tid, use] : process.judge->judge(judged, stacks)) {
      if (const auto found = waiting.find(tid); found != waiting.end()) {
        found->second.use = use;
      }
    }
  }
  process.waiting = std::move(waiting);
}

}  // namespace pyinject::live
