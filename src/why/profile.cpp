#include "why/profile.hpp"

#include "perfdata/target_gaps.hpp"
#include "pyinject/perfdata/stack_counts.hpp"
#include "report/clock.hpp"
#include "report/names.hpp"
#include "report/profile_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace pyinject::why {

namespace {

class Builder {
 public:
  Builder(const Recording& recording, const Accounts& accounts)
      : recording_{recording}, accounts_{accounts} {}

  [[nodiscard]] report::Profile build() &&;

 private:
  std::uint32_t mark(std::uint32_t caller, const std::string& name) {
    return profile_.call(caller, {.kind = report::Kind::kMark, .name = name});
  }
  [[nodiscard]] std::uint32_t root(sample::Gil gil);
  [[nodiscard]] std::uint32_t python(std::uint32_t root, std::uint32_t stack);
  [[nodiscard]] std::uint32_t kernel(std::uint32_t caller, std::uint32_t place);
  [[nodiscard]] std::uint32_t thread(std::uint32_t tid);
  void add(const Sample& sample);
  void add(const Wait& wait);

  const Recording& recording_;
  const Accounts& accounts_;
  report::ProfileBuilder profile_;
  std::uint32_t samples_ =
      profile_.event({.name = "cpu-clock", .unit = report::Unit::kNanoseconds});
  std::uint32_t waits_ = profile_.event({.name = "context-switches", .unit = report::Unit::kWaits});
  std::uint32_t kernel_ = profile_.object("[kernel.kallsyms]");
  std::map<std::uint32_t, std::uint32_t> threads_;
};

std::uint32_t Builder::root(sample::Gil gil) {
  return gil == sample::Gil::kHeld        ? mark(0, "[GIL held]")
         : gil == sample::Gil::kWaitedFor ? mark(0, "[waiting for the GIL]")
                                          : 0;
}

std::uint32_t Builder::python(std::uint32_t root, std::uint32_t stack) {
  const auto& lines = recording_.stacks.lines(stack);
  for (auto i = lines.size(); i-- > 0;) {
    const auto& name = recording_.names.text(lines[i].function);
    root = profile_.call(root,
                         {.kind = report::Kind::kPython,
                          .name = name.empty() ? "[unknown]" : name,
                          .file = recording_.names.text(lines[i].file)},
                         lines[i].line);
  }
  return root;
}

std::uint32_t Builder::kernel(std::uint32_t caller, std::uint32_t place) {
  return profile_.call(
      caller,
      {.kind = report::Kind::kKernel, .name = recording_.names.text(place), .object = kernel_});
}

std::uint32_t Builder::thread(std::uint32_t tid) {
  const auto [known, fresh] = threads_.try_emplace(tid, 0);
  if (fresh) {
    const auto facts = recording_.threads.find(tid);
    known->second = profile_.thread(
        {.pid = static_cast<std::uint32_t>(recording_.pid),
         .tid = tid,
         .name = facts == recording_.threads.end() ? fmt::format(":{}", tid) : facts->second.name,
         .process = recording_.command});
  }
  return known->second;
}

void Builder::add(const Sample& sample) {
  auto stack = root(sample.gil);
  stack = sample.kind == perfdata::StackKind::kCut      ? mark(stack, "[truncated: python stack]")
          : sample.kind == perfdata::StackKind::kUnread ? mark(stack, "[unnamed Python functions]")
                                                        : stack;
  stack = python(stack, sample.stack);
  auto does = sample::Does::kUnknown;
  switch (sample.use) {
    case Use::kKernel:
    case Use::kFault:
      stack = kernel(stack, sample.place);
      break;
    case Use::kCollector:
      stack =
          profile_.call(stack, {.kind = report::Kind::kPython, .name = report::kGarbageCollector});
      break;
    case Use::kC: {
      does = sample::Does::kCall;
      const auto& place = recording_.names.text(sample.place);
      const bool file = place.starts_with('/');
      stack = profile_.call(stack, {.kind = report::Kind::kNative,
                                    .name = file ? std::string{} : place,
                                    .object = profile_.object(file ? place : std::string{})});
      break;
    }
    default:
      does = sample::Does::kByteCode;
  }
  profile_.add({.time = sample.time,
                .period = static_cast<std::uint64_t>(std::llround(sample.weight)),
                .stack = stack,
                .thread = thread(sample.tid),
                .event = samples_,
                .does = does});
}

void Builder::add(const Wait& wait) {
  const bool preempted = wait.use == Use::kPreempted;
  const bool told = wait.use == Use::kLock || wait.use == Use::kThread || wait.use == Use::kClient;
  auto stack = root(wait.use == Use::kGil ? sample::Gil::kWaitedFor : wait.gil);
  stack = python(preempted ? mark(stack, "[preempted]") : stack, wait.stack);
  if (told) {
    stack = mark(stack, fmt::format("[{}]", sample::facts(wait.use).text));
  }
  if (wait.place != 0) {
    stack = kernel(stack, wait.place);
  }
  profile_.add({.time = wait.begin,
                .period = wait.length(),
                .stack = stack,
                .thread = thread(wait.tid),
                .event = waits_});
}

report::Profile Builder::build() && {
  for (const auto& sample : accounts_.samples) {
    add(sample);
  }
  for (const auto& wait : accounts_.waits) {
    add(wait);
  }
  auto profile = std::move(profile_).finish();
  profile.lost = recording_.lost;
  if (auto lacks = perfdata::incompleteness(accounts_.kinds, false); !lacks.empty()) {
    profile.notes.push_back(std::move(lacks));
  }
  perfdata::TargetGaps gaps;
  if (const base::Pid pid{recording_.pid}; !recording_.frozen.empty()) {
    gaps.add(perfdata::Gap::kFrozen, pid, recording_.frozen);
  } else if (recording_.stopped) {
    gaps.add(perfdata::Gap::kStopped, pid);
  }
  std::ranges::move(perfdata::sentences(gaps), std::back_inserter(profile.notes));
  if (recording_.cut) {
    profile.notes.emplace_back(kCutText);
  }
  profile.clock = report::monotonic_clock();
  profile.engine = "BPF";
  return profile;
}

}  // namespace

report::Profile to_profile(const Recording& recording, const Accounts& accounts) {
  return Builder{recording, accounts}.build();
}

}  // namespace pyinject::why
