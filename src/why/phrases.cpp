#include "why/phrases.hpp"

#include "base/text.hpp"
#include "why/event_rings.hpp"
#include "why/lines.hpp"
#include "why/totals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include <unistd.h>

namespace pyinject::why {

long percent(double value) { return std::lround(value * 100); }

std::string short_place(const Spent& spent) {
  const auto name = spent.file.substr(spent.file.rfind('/') + 1);
  return spent.function.empty() ? std::string{"code without Python functions"}
                                : fmt::format("{} {}:{}", base::printable(spent.function),
                                              base::printable(name), spent.line);
}

std::string next_of(const Recording& recording, std::string_view next) {
  return fmt::format(fmt::runtime(next), recording.pid);
}

std::string dump_of(const Recording& recording) { return next_of(recording, sample::kNextDump); }

std::string record_command(const Recording& recording, std::string_view options) {
  return fmt::format("perf-pyinject record -p {} --engine bpf {}-- sleep 10", recording.pid,
                     options);
}

std::string_view end_name(const Recording& recording) {
  return recording.executed ? "executed" : "exited";
}

std::string end_text(const Recording& recording) {
  return fmt::format("it {} after {:.1f} s of the recording",
                     recording.executed ? "executed another program" : "exited",
                     seconds(recording.end - recording.begin));
}

std::string end_next(const Recording& recording) {
  return recording.executed ? fmt::format("perf-pyinject why -p {}", recording.pid) : "";
}

bool descendants_work(const Recording& recording) {
  return share(static_cast<std::uint64_t>(recording.descendants.on_cpu.count()),
               recording.end - recording.begin) >= kOfThreadIdle;
}

std::string descendants_command(const Recording& recording) {
  return fmt::format("perf-pyinject why -p {} --children", recording.pid);
}

std::string descendants_text(const Recording& recording, std::uint64_t length) {
  const auto& [count, on_cpu, living] = recording.descendants;
  auto text =
      fmt::format("its {} {} CPUs", count == 1 ? "child process uses" : "child processes use",
                  short_number(share(static_cast<std::uint64_t>(on_cpu.count()), length)));
  const auto busiest =
      std::ranges::max_element(living, {}, [](const auto& each) { return each.second; });
  if (busiest != living.end() && busiest->second.count() != 0 && 2 * busiest->second >= on_cpu) {
    text += fmt::format(
        ", pid {} {}", busiest->first.value(),
        short_number(share(static_cast<std::uint64_t>(busiest->second.count()), length)));
  }
  return text;
}

std::string most_wait(const Recording& recording, const std::map<Line, std::size_t>& all,
                      std::string_view kind) {
  if (all.empty()) {
    return {};
  }
  const auto [line, most] =
      *std::ranges::max_element(all, {}, [](const auto& each) { return each.second; });
  std::size_t count = 0;
  for (const auto& each : all) {
    count += each.second;
  }
  return fmt::format("; {} of {} wait in {}", most, base::counted(count, kind),
                     short_place({.function = recording.names.text(line.function),
                                  .file = recording.names.text(line.file),
                                  .line = line.line}));
}

std::string limit_text(const Recording& recording) {
  const auto& [cgroup, cpus, throttled] = *recording.cpu_limit;
  return fmt::format("its cgroup {} may use {} CPUs, and was throttled for {:.1f} s over all CPUs",
                     base::printable(cgroup), short_number(cpus),
                     std::chrono::duration<double>{throttled}.count());
}

std::string servers_text(const Recording& recording) {
  constexpr std::size_t kShown = 3;
  std::vector<std::pair<std::size_t, std::string>> all;
  for (const auto& [address, count] : recording.servers) {
    all.emplace_back(count, address);
  }
  std::ranges::sort(all, std::greater{});
  std::string text;
  for (const auto& [count, address] : std::span{all}.first(std::min(all.size(), kShown))) {
    text += fmt::format("{}{} ({})", text.empty() ? "; connected to " : ", ",
                        base::printable(address), count);
  }
  return text + (all.size() > kShown ? fmt::format(" and {} more", all.size() - kShown) : "");
}

std::string holder_text(const Recording& recording, const std::vector<Holder>& holders) {
  constexpr double kLeast = 0.1;  // of the waits: else too many have it to name one
  struct Sum {
    std::uint64_t time = 0;
    std::set<std::uint32_t> tids = {};
    const Holder* any = nullptr;
  };
  std::map<std::tuple<std::string, std::string, std::uint32_t, bool>, Sum> sums;
  std::uint64_t all = 0;
  for (const auto& holder : holders) {
    all += holder.time;
    if (holder.tid != 0 && !holder.held.function.empty()) {
      auto& sum = sums[{holder.held.function, holder.held.file, holder.held.line, holder.released}];
      sum.time += holder.time;
      sum.tids.insert(holder.tid);
      sum.any = &holder;
    }
  }
  const auto most =
      std::ranges::max_element(sums, {}, [](const auto& each) { return each.second.time; });
  if (most == sums.end() || share(most->second.time, all) < kLeast) {
    return {};
  }
  const auto& [time, tids, any] = most->second;
  const bool one = tids.size() == 1;
  const auto who = one ? thread_text(recording, any->tid) : base::counted(tids.size(), "thread");
  return fmt::format("; for {} % of that, {}{} {}{} it in {}", percent(share(time, all)),
                     any->released ? "until " : "", who, any->released ? "release" : "hold",
                     one ? "s" : "", short_place(any->held));
}

std::string new_pages_text(const Recording& recording, std::uint64_t grown) {
  constexpr std::size_t kFewest = 5;  // samples
  constexpr double kMostlyNew = 0.5;  // else most faults are of memory that is used again and again
  constexpr double kOfOneLine = 0.3;
  const auto& faults = recording.faults;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 1024;
  if (faults.size() < kFewest || share(grown, faults.size() * kFaultPeriod * page) < kMostlyNew) {
    return {};
  }
  std::map<Line, std::uint64_t> lines;
  for (const auto& fault : faults) {
    if (const auto* const at = stack_at(of_thread(recording.python, fault.tid), fault.time)) {
      ++lines[line_of(recording, at->stack)];
    }
  }
  const auto most =
      std::ranges::max_element(lines, {}, [](const auto& each) { return each.second; });
  if (most == lines.end() || most->first.function == 0 ||
      share(most->second, faults.size()) < kOfOneLine) {
    return {};
  }
  return fmt::format("; {} % of its new pages in {}", percent(share(most->second, faults.size())),
                     short_place({.function = recording.names.text(most->first.function),
                                  .file = recording.names.text(most->first.file),
                                  .line = most->first.line,
                                  .detail = {}}));
}

std::string users_text(const Recording& recording, std::uint64_t own, std::uint64_t length) {
  constexpr std::size_t kShown = 3;
  constexpr double kLeast = 0.1;  // of a CPU
  std::vector<std::pair<double, std::string>> all;
  auto rest = recording.busy_cpus - share(own, length);
  for (const auto& [name, time] : recording.others) {
    all.emplace_back(share(time, length), name);
  }
  std::ranges::sort(all, std::greater{});
  auto text =
      fmt::format("; meanwhile on CPUs: its own threads {}", short_number(share(own, length)));
  for (const auto& [cpus, name] : std::span{all}.first(std::min(all.size(), kShown))) {
    if (cpus >= kLeast) {
      rest -= cpus;
      text += fmt::format(", {} {}", name.empty() ? "processes that ended" : base::printable(name),
                          short_number(cpus));
    }
  }
  // Without a switch, or not visible here, or less each.
  if (rest >= kLeast) {
    text += fmt::format(", others {}", short_number(rest));
  }
  return text;
}

std::string waiter_text(const Recording& recording, std::uint32_t tid) {
  const auto seen = of_thread(recording.sightings, tid);
  const auto place = seen.empty() ? Spent{} : spent_at(recording, seen.back().stack, 0);
  return thread_text(recording, tid) +
         (place.function.empty() ? "" : fmt::format(" in {}", short_place(place)));
}

std::string thread_text(const Recording& recording, std::uint32_t tid) {
  const auto found = recording.threads.find(tid);
  return found == recording.threads.end()
             ? fmt::format("thread {}", tid)
             : fmt::format("thread {} \"{}\"", tid, base::printable(found->second.name));
}

}  // namespace pyinject::why
