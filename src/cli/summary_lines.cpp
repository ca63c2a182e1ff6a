#include "cli/summary_lines.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "cli/console.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <unistd.h>

namespace pyinject::cli {

namespace {

using base::grouped;

constexpr std::uint64_t kMostCopied = 65528;  // the kernel's limit on a stack dump, in bytes
constexpr std::size_t kShownByPerf = 127;     // callchain entries, unless --max-stack sets more

// "1 sample", "2 samples".
std::string phrase(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

std::string loss_line(const weave::WeaveSummary& facts) {
  const auto lost = static_cast<double>(facts.lost);
  const double share = 100 * lost / (lost + static_cast<double>(facts.samples + facts.unwanted));
  std::string advice = facts.by_frequency ? "a lower -F, " : "";
  advice += facts.by_period ? "a larger -c, " : "";
  advice.resize(advice.size() - std::min<std::size_t>(advice.size(), 2));
  // perf does not say what they were: samples, or mappings, forks and names.
  return fmt::format("perf lost {}, {} of the samples: {}{}a larger -m helps",
                     phrase(facts.lost, "record"),
                     share < 0.1 ? "less than 0.1 %" : fmt::format("up to {:.1f} %", share), advice,
                     advice.empty() ? "" : " or ");
}

std::string call_line(const weave::WeaveSummary& facts) {
  std::string line =
      fmt::format("{} timed, in nanoseconds (period)", phrase(facts.timed_calls, "system call"));
  if (facts.lasting_calls > 0) {
    line += fmt::format(", {} until the recording ended", grouped(facts.lasting_calls));
  }
  if (facts.untimed_calls > 0) {
    line += fmt::format("; {} not timed: the end is unknown", grouped(facts.untimed_calls));
  }
  return line;
}

std::string younger(std::uint64_t bytes) {
  return bytes == 0 ? ""
                    : fmt::format("; {} more since the last tenth of the time: perhaps only in use",
                                  base::bytes_text(bytes));
}

std::string memory_line(const weave::WeaveSummary& facts) {
  auto line = fmt::format("{} of {} that system calls have mapped are still mapped (period)",
                          base::bytes_text(facts.kept_bytes), base::bytes_text(facts.mapped_bytes));
  line += younger(facts.young_bytes);
  if (facts.unknown_breaks != 0) {
    line += fmt::format("; the length of {} is unknown",
                        base::counted(facts.unknown_breaks, "call of brk", "calls of brk"));
  }
  if (facts.memory_calls_cut) {
    line += "; there were too many calls: later ones are missing";
  }
  return line;
}

std::string who_is(const python::Target& target) {
  return fmt::format("pid {}: Python {}", target.id.pid.value(), python::version_text(target));
}

}  // namespace

std::string format_short(std::chrono::nanoseconds span) {
  const auto microseconds = static_cast<double>(span.count()) / 1000;
  return microseconds < 1000 ? fmt::format("{:.0f} us", microseconds)
                             : fmt::format("{:.1f} ms", microseconds / 1000);
}

perfdata::StackCounts stack_counts(const record::RecordSummary& summary) {
  perfdata::StackCounts stacks;
  for (const auto& file : summary.woven) {
    stacks.add(file.summary.stacks);
  }
  return stacks;
}

std::string observation_line(const python::Target& target) {
  return fmt::format("{}: attached read-only (BPF)", who_is(target));
}

std::string activation_line(const targets::ActiveTarget& active) {
  const auto& activation = active.activation;
  const auto who = who_is(active.target);
  if (activation.before != python::TrampolineState::kOff) {
    return fmt::format("{}: trampoline was already {}; left on", who,
                       python::name(activation.before));
  }
  if (activation.mechanism == python::Mechanism::kNone) {
    return who +
           (active.target.owner.pid.value() == ::getpid()
                ? ": trampoline on since a target forked it"
                : ": trampoline was on, left by a killed session or inherited by a fork; taken "
                  "over");
  }
  return fmt::format("{}: trampoline on, stopped for {}", who, format_short(activation.stopped));
}

std::vector<std::string> woven_lines(const record::WovenFile& file, const std::string& done) {
  const auto& facts = file.summary;
  std::vector<std::string> lines{
      fmt::format("{}: {}, {}, {}", done, base::counted(facts.samples, "sample"),
                  base::bytes_text(facts.bytes_after), base::printable(file.path))};
  const auto bad =
      facts.cut + facts.no_information + facts.broken + facts.limited + facts.no_user_part;
  if (bad > 0) {
    std::string line = bad == 1 ? "1 stack is incomplete:"
                                : fmt::format("{} stacks are incomplete:", grouped(bad));
    const auto add = [&](std::uint64_t count, std::string_view what) {
      if (count > 0) {
        line += fmt::format("{} {} {}", line.back() == ':' ? "" : ",", grouped(count), what);
      }
    };
    add(facts.cut,
        fmt::format("cut at the end of the copied stack ([truncated: stack dump]; {})",
                    facts.largest_copy < kMostCopied ? "--call-graph dwarf,65528 copies more"
                                                     : "perf cannot copy more"));
    add(facts.no_information, "cut at a file without unwind tables ([no unwind info: FILE])");
    add(facts.broken, "broken ([broken stack: FILE])");
    add(facts.no_user_part, "without a deferred user part ([no deferred callchain])");
    add(facts.limited, "too long");
    lines.push_back(line);
  }
  constexpr std::size_t kMostDropped = 5;
  for (std::size_t i = 0; i < std::min(kMostDropped, facts.dropped.size()); ++i) {
    lines.push_back(weave::phrase(facts.dropped[i]));
  }
  if (facts.dropped.size() > kMostDropped) {
    lines.push_back(
        base::counted(facts.dropped.size() - kMostDropped, "more such loss", "more such losses"));
  }
  if (facts.unreadable > 0) {
    lines.push_back(phrase(facts.unreadable, "damaged sample") + " skipped");
  }
  if (facts.unwanted > 0) {
    lines.push_back(phrase(facts.unwanted, "sample") + " of other processes skipped");
  }
  if (facts.map_writes > 0) {
    lines.push_back(phrase(facts.map_writes, "sample") +
                    " of the tool's own perf map writes skipped");
  }
  if (facts.map_writes_hidden) {
    lines.emplace_back(
        "samples of the tool's own perf map writes may remain: --call-graph dwarf,16384 finds them "
        "where the C library hides them");
  }
  if (facts.lost > 0) {
    lines.push_back(loss_line(facts));
  }
  if (facts.timed_calls + facts.untimed_calls > 0) {
    lines.push_back(call_line(facts));
  }
  if (facts.mapped_bytes + facts.unknown_breaks > 0) {
    lines.push_back(memory_line(facts));
  }
  if (facts.allocated_bytes > 0) {
    lines.push_back(
        fmt::format("{} of {} that the allocator has told are not freed (period, an estimate){}",
                    base::bytes_text(facts.kept_blocks_bytes),
                    base::bytes_text(facts.allocated_bytes), younger(facts.young_blocks_bytes)));
  }
  if (!facts.damage.empty()) {
    lines.push_back(fmt::format("perf's file is cut short: {}", facts.damage));
  }
  return lines;
}

namespace {

// "8 of 9 samples in Python processes have Python stacks". OTHERS: samples of other programs, which
// are part of ALL.
std::string share_of_stacks(std::uint64_t count, std::uint64_t all, std::uint64_t others) {
  if (all == count && all != 1) {
    return fmt::format("all {} in Python processes have Python stacks", phrase(all, "sample"));
  }
  return fmt::format("{} of {}{} {}", grouped(count), phrase(all, "sample"),
                     others == 0 ? " in Python processes" : "",
                     count == 1 ? "has a Python stack" : "have Python stacks");
}

}  // namespace

std::string stacks_line(const perfdata::StackCounts& stacks) {
  using perfdata::StackKind;
  auto line =
      share_of_stacks(stacks.of(StackKind::kComplete), stacks.all(), stacks.of_other_programs());
  if (const auto none = stacks.of(StackKind::kNoPython); none != 0) {
    line += fmt::format(", {} in threads that ran no Python at that moment", grouped(none));
  }
  const auto lacks = perfdata::what_lacks(stacks);
  return line + (lacks.empty() ? "" : ", ") + lacks;
}

std::string sampler_line(const record::SamplerStats& stats, const perfdata::StackCounts& stacks) {
  const auto others = stacks.of_other_programs();
  auto line = share_of_stacks(stats.with_frames, stats.matched + stats.unmatched + others, others);
  const auto add = [&line](std::uint64_t count, std::string_view what) {
    if (count > 0) {
      line += fmt::format(", {} {}", grouped(count), what);
    }
  };
  add(stats.python_only, "without the C functions between the Python functions");
  if (stats.python_only_cut > 0) {
    line += fmt::format(" ({} because the copied part of the stack was too short)",
                        grouped(stats.python_only_cut));
  }
  add(stats.no_state, "in threads that are not Python's");
  add(stats.no_frames, "in threads that ran no Python at that moment");
  add(stats.unmatched, "unmatched");
  if (stats.not_joined > 0) {
    line += fmt::format(" ({} from before or after the join)", grouped(stats.not_joined));
  } else if (const auto before = stacks.of(perfdata::StackKind::kBeforeAttach); before > 0) {
    line += fmt::format(" ({} from before or after the attach)", grouped(before));
  }
  if (others > 0) {
    perfdata::StackCounts only;
    for (const auto kind :
         {perfdata::StackKind::kLaterProgram, perfdata::StackKind::kOtherProgram}) {
      only.counts.at(static_cast<std::size_t>(kind)) = stacks.of(kind);
    }
    line += ", " + perfdata::what_lacks(only);
  }
  add(stats.truncated, "cut at 512 Python functions");
  add(stats.unreadable, "partly unreadable");
  add(stats.lost, "lost");
  if (stats.lost_names > 0) {
    line += fmt::format("; {} lost", phrase(stats.lost_names, "function name"));
  }
  if (stats.gil_held + stats.gil_waited_for > 0) {
    line += fmt::format("; GIL held in {}, waited for in {}", grouped(stats.gil_held),
                        grouped(stats.gil_waited_for));
  }
  return line;
}

namespace {

// What SUMMARY says about the stacks of its samples; empty: nothing.
std::string about_stacks(const record::RecordSummary& summary,
                         const perfdata::StackCounts& stacks) {
  const bool sampled = summary.sampler && summary.sampler->matched + summary.sampler->unmatched > 0;
  if (sampled || (summary.sampler && stacks.all() > 0)) {
    return sampler_line(*summary.sampler, stacks);
  }
  return stacks.all() > 0 ? stacks_line(stacks) : "";
}

// Adds that to LINES, the lines about the files: one line in all if there is no more to tell than
// that each sample has its stack. DONE: "recorded 2.0 s".
void add_stacks(const record::RecordSummary& summary, const std::string& done,
                std::vector<std::string>& lines) {
  const auto about = about_stacks(summary, stack_counts(summary));
  const auto* const file = summary.woven.size() == 1 ? &summary.woven.front() : nullptr;
  const auto samples = file == nullptr ? 0 : file->summary.samples;
  if (samples > 1 && lines.size() == 1 && about == share_of_stacks(samples, samples, 0)) {
    lines.front() =
        fmt::format("{}: all {} have Python stacks; {}, {}", done, phrase(samples, "sample"),
                    base::bytes_text(file->summary.bytes_after), base::printable(file->path));
  } else if (!about.empty()) {
    lines.push_back(about);
  }
}

// Of files that exist only until they have been read.
std::vector<std::string> without_paths(std::vector<std::string> lines,
                                       const record::RecordSummary& summary) {
  for (auto& line : lines) {
    for (const auto& file : summary.files) {
      const auto ending = ", " + base::printable(file.path);
      if (line.ends_with(ending)) {
        line.resize(line.size() - ending.size());
      }
    }
  }
  return lines;
}

}  // namespace

std::vector<std::string> summary_lines(const record::RecordSummary& summary,
                                       const std::string& perf) {
  const std::string span =
      fmt::format("{:.1f} s", static_cast<double>(summary.elapsed.count()) / 1e9);
  const std::string done = summary.elapsed.count() == 0 ? "completed" : "recorded " + span;
  if (summary.output.pipe) {
    return {fmt::format("recorded {} of {} to standard output", span,
                        phrase(summary.targets, "target"))};
  }
  std::vector<std::string> lines;
  for (const auto& file : summary.woven) {
    const auto woven = woven_lines(file, done);
    lines.insert(lines.end(), woven.begin(), woven.end());
  }
  for (const auto& file : summary.files) {
    if (std::ranges::count(summary.woven, file.path, &record::WovenFile::path) != 0) {
      continue;
    }
    std::string line = fmt::format("recorded {}: ", span);
    if (file.samples) {
      line += fmt::format("{}{}, ", file.approximate ? "about " : "",
                          base::counted(*file.samples, "sample"));
    }
    if (file.megabytes > 0) {
      line += fmt::format("{:.3f} MB, ", file.megabytes);
    }
    lines.push_back(line + base::printable(file.path));
  }
  add_stacks(summary, done, lines);
  if (summary.unknown_threads > 0) {
    lines.push_back(fmt::format(
        "{}: functions entered before the attach are missing: the stack changed whenever it was "
        "read",
        phrase(summary.unknown_threads, "thread")));
  }
  if (!summary.counters.empty()) {
    lines.push_back(summary.counters);
  }
  if (perf.empty()) {
    return without_paths(std::move(lines), summary);
  }
  const auto keeps_nothing = [](const record::WovenFile& file) {
    return file.summary.samples == 0 &&
           file.summary.mapped_bytes + file.summary.allocated_bytes != 0;
  };
  if (!summary.woven.empty() && std::ranges::all_of(summary.woven, keeps_nothing)) {
    return lines;  // there is nothing to report
  }
  const auto file =
      shell_word(summary.files.empty() ? summary.output.path : summary.files.front().path);
  if (summary.without_perf) {
    lines.push_back("next: perf-pyinject report " + file);
    return lines;
  }
  std::size_t longest = 0;
  for (const auto& woven : summary.woven) {
    longest = std::max(longest, woven.summary.longest);
  }
  const std::string depth =
      longest > kShownByPerf ? fmt::format(" --max-stack {}", longest) : std::string{};
  lines.push_back(fmt::format("next: {} report{}{} -i {}", shell_word(perf),
                              summary.no_inline ? " --no-inline" : "", depth, file));
  if (!summary.woven.empty()) {  // with callchains
    lines.back() += ", or perf-pyinject report " + file;
  }
  return lines;
}

}  // namespace pyinject::cli
