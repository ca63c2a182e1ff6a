#include "perfdata/target_gaps.hpp"

#include "base/pid_list.hpp"
#include "base/text.hpp"
#include "perfdata/section_lines.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::perfdata {

namespace {

constexpr std::size_t kMostCgroup = 1024;
// By Gap.
constexpr std::array<std::string_view, kGaps> kNames{"frozen", "stopped", "switched_off"};

std::string sentence(Gap gap, const TargetGaps::Targets& targets) {
  const auto who = base::list_pids(targets.pids, targets.count);
  const bool one = targets.count == 1;
  switch (gap) {
    case Gap::kFrozen:
      return one ? fmt::format(
                       "{}: frozen by its cgroup {} (cgroup.freeze) at the end: it has no "
                       "samples until it goes on (echo 0 > {}/cgroup.freeze)",
                       who, targets.cgroup, targets.cgroup)
                 : fmt::format(
                       "{}: frozen by their cgroups, such as {} (cgroup.freeze), at the "
                       "end: they have no samples until they go on (echo 0 > "
                       "{}/cgroup.freeze)",
                       who, targets.cgroup, targets.cgroup);
    case Gap::kStopped:
      return one ? fmt::format(
                       "{}: stopped by job control (SIGSTOP or Ctrl-Z) at the end: it has "
                       "no samples until it goes on (kill -CONT {})",
                       who, targets.pids.front().value())
                 : who +
                       ": stopped by job control (SIGSTOP or Ctrl-Z) at the end: they have no "
                       "samples until they go on (kill -CONT PID)";
    case Gap::kSwitchedOff:
      return who +
             (one ? ": the program has switched the trampoline off "
                    "(sys.deactivate_stack_trampoline): the functions that it called after that "
                    "are missing, and no mark shows where: use --engine bpf"
                  : ": the programs have switched the trampoline off "
                    "(sys.deactivate_stack_trampoline): the functions that they called after that "
                    "are missing, and no mark shows where: use --engine bpf");
  }
  return {};
}

// "3 4711,4712,4713 /sys/fs/cgroup/x". No targets: not readable.
TargetGaps::Targets parse_targets(std::string_view text) {
  const auto words = base::split(text, ' ');
  if (words.size() < 2) {
    return {};
  }
  TargetGaps::Targets targets;
  targets.count = base::parse_number<std::uint64_t>(words[0]).value_or(0);
  for (const auto word : base::split(words[1], ',')) {
    const auto pid = base::parse_number<pid_t>(word).value_or(0);
    if (pid > 0 && targets.pids.size() < base::kMostListedPids) {
      targets.pids.emplace_back(pid);
    }
  }
  if (words.size() > 2) {
    targets.cgroup = base::printable(text.substr(words[0].size() + words[1].size() + 2));
  }
  const bool valid = !targets.pids.empty() && targets.count >= targets.pids.size();
  return valid ? targets : TargetGaps::Targets{};
}

}  // namespace

void TargetGaps::add(Gap gap, base::Pid pid, std::string_view cgroup) {
  auto& those = of(gap);
  if (those.count++ == 0) {
    those.cgroup = base::printable(cgroup, kMostCgroup);
  }
  if (those.pids.size() < base::kMostListedPids) {
    those.pids.push_back(pid);
  }
}

std::vector<std::string> sentences(const TargetGaps& gaps) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < kGaps; ++i) {
    if (gaps.targets.at(i).count != 0) {
      all.push_back(sentence(static_cast<Gap>(i), gaps.targets.at(i)));
    }
  }
  return all;
}

std::string to_section(const TargetGaps& gaps) {
  std::string text;
  for (std::size_t i = 0; i < kGaps; ++i) {
    const auto& [count, pids, cgroup] = gaps.targets.at(i);
    if (count == 0) {
      continue;
    }
    text += fmt::format("{} {} ", kNames.at(i), count);
    for (const auto& pid : pids) {
      text += fmt::format("{}{}", &pid == pids.data() ? "" : ",", pid.value());
    }
    text += (cgroup.empty() ? "" : " ") + cgroup + "\n";
  }
  return text;
}

TargetGaps parse_target_gaps(Bytes section) {
  TargetGaps gaps;
  for_each_line(section, [&](std::string_view name, std::string_view rest) {
    if (const auto found = std::ranges::find(kNames, name); found != kNames.end()) {
      gaps.of(static_cast<Gap>(found - kNames.begin())) = parse_targets(rest);
    }
  });
  return gaps;
}

}  // namespace pyinject::perfdata
