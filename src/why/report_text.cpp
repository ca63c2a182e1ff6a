#include "why/report_text.hpp"

#include "base/text.hpp"
#include "inspect/greenlets_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pyinject::why {

namespace {

constexpr std::size_t kMostLines = 40;
constexpr std::size_t kShownGroups = 6;
constexpr std::size_t kShownHolders = 3;
constexpr std::size_t kShownGreenletStacks = 3;
constexpr std::size_t kShownFunctions = 5;
constexpr double kLeast = 0.01;  // of a group's time
constexpr double kWithLines = 0.05;
constexpr std::size_t kMostOfText = 60;

std::string shown(std::string_view text) { return base::printable(text, kMostOfText); }

std::string place_of(const Spent& spent) {
  const auto file = spent.file.substr(spent.file.rfind('/') + 1);
  auto text = spent.function.empty() ? std::string{}
                                     : fmt::format("{}  {}", shown(spent.function), shown(file));
  if (spent.line != 0) {
    text += fmt::format(":{}", spent.line);
  }
  if (!spent.detail.empty()) {
    text += fmt::format("{}[{}]", text.empty() ? "" : "  ", shown(spent.detail));
  }
  return text;
}

// LENGTH: of the recording.
std::string threads_of(const Group& group, std::uint64_t length) {
  constexpr double kFewer = 0.9;
  if (group.tids.size() == 1) {
    return fmt::format("thread {}", group.tids.front());
  }
  const auto at_a_time = share(group.wall, length);
  return fmt::format("{} threads", group.tids.size()) +
         (at_a_time < kFewer * static_cast<double>(group.tids.size())
              ? fmt::format(", {} at a time", short_number(at_a_time))
              : "");
}

void add_group(const Group& group, std::uint64_t length, std::string& text) {
  const auto threads = threads_of(group, length);
  text += fmt::format("\n{}{}: has work {:.0f} % of the time\n", shown(group.name),
                      group.name == threads ? "" : fmt::format(" ({})", threads),
                      share(group.busy, group.wall) * 100);
  for (const auto& use : group.uses) {
    const auto part = share(use.time, group.wall);
    if (part < kLeast) {
      continue;
    }
    text += fmt::format("{:5.0f} %  {}\n", part * 100, sample::facts(use.use).text);
    const std::size_t most = sample::facts(use.use).idle ? 1
                             : part < kWithLines         ? 0
                                                         : use.top.size();
    for (std::size_t i = 0; i < std::min(most, use.top.size()); ++i) {
      const auto& spent = use.top[i];
      const auto where = place_of(spent);
      if (!where.empty() && share(spent.time, group.wall) >= kLeast) {
        text += fmt::format("{:12.0f} %  {}\n", share(spent.time, group.wall) * 100, where);
      }
    }
  }
}

void add_holders(const std::vector<Holder>& holders, std::string_view title, std::uint64_t length,
                 std::string& text) {
  bool titled = false;
  for (std::size_t i = 0; i < std::min(holders.size(), kShownHolders); ++i) {
    const auto& holder = holders[i];
    if (share(holder.time, length) < kLeast) {
      break;
    }
    if (!titled) {
      text += fmt::format("\n{}\n", title);
      titled = true;
    }
    const auto who = holder.tid == 0 ? std::string{"unknown"}
                                     : fmt::format("{} ({})", shown(holder.thread), holder.tid);
    text += fmt::format("{:7.2f} s  {}{}{}  {}\n{:11}{} waits in  {}\n", seconds(holder.time), who,
                        holder.object.empty() ? "" : fmt::format(", {}", shown(holder.object)),
                        holder.released ? ", released in" : "", place_of(holder.held), "",
                        shown(holder.waiter), place_of(holder.waited));
  }
}

std::string considered_text(const std::vector<Considered>& considered) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(considered.size(), kMost); ++i) {
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", considered[i].pid,
                        considered[i].cpu * 100);
  }
  return text.empty() ? text
                      : fmt::format("the busiest of {}, by their use of a CPU just before: {}{}\n",
                                    base::counted(considered.size(), "process", "processes"), text,
                                    considered.size() > kMost
                                        ? fmt::format(" and {} more", considered.size() - kMost)
                                        : "");
}

std::string first_line(const Report& report) {
  return fmt::format("pid {}: {}", report.pid, report.verdict);
}

std::string next_line(const Report& report) {
  return report.next.empty() ? "" : fmt::format("next: {}\n", report.next);
}

std::size_t lines_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

// The busiest groups, in MOST lines: at least one, and one line for the rest.
std::string groups_text(const Report& report, std::size_t most) {
  std::string text;
  std::size_t shown = 0;
  while (shown < std::min(report.groups.size(), kShownGroups)) {
    std::string group;
    add_group(report.groups[shown], report.length, group);
    if (shown > 0 && lines_of(text) + lines_of(group) + 2 > most) {
      break;
    }
    text += group;
    ++shown;
  }
  if (shown < report.groups.size()) {
    text += fmt::format("\n{} with less work\n",
                        base::counted(report.groups.size() - shown, "more group"));
  }
  return text;
}

// Who has what others wait for, and what else there is.
std::string further(const Report& report) {
  std::string text;
  add_holders(report.gil, "who has the GIL while others wait:", report.length, text);
  add_holders(report.locks, "who has the lock while others wait:", report.length, text);
  const auto greenlets = inspect::greenlets_text(
      report.greenlets, {.indent = "",
                         .most_stacks = kShownGreenletStacks,
                         .most_functions = kShownFunctions,
                         .rest = fmt::format("perf-pyinject dump -p {}", report.pid)});
  text += greenlets.empty() ? "" : "\n" + greenlets;
  if (!report.all_greenlets) {
    text += "... more greenlets could not be read in time\n";
  }
  if (!report.unusual.empty()) {
    text += "\nunusual:\n";
  }
  for (const auto& unusual : report.unusual) {
    text += fmt::format("  {}\n", unusual.text);
    if (!unusual.next.empty()) {
      text += fmt::format("    next: {}\n", unusual.next);
    }
  }
  return text;
}

std::string details(const Report& report) {
  const auto head = next_line(report) + considered_text(report.considered);
  const auto tail = further(report);
  const auto used = 1 + lines_of(head) + lines_of(tail);
  return head + groups_text(report, kMostLines - std::min(used, kMostLines)) + tail;
}

}  // namespace

std::string to_text(const Report& report, const TextOptions& options) {
  const auto first = fmt::format("{}{}{}\n", options.bold ? "\033[1m" : "", first_line(report),
                                 options.bold ? "\033[0m" : "");
  auto text = first + details(report);
  if (options.rows != 0 && lines_of(text) >= options.rows) {  // one more for the shell's prompt
    text += "\n" + first + next_line(report);
  }
  return text;
}

// An indented block: nothing that a process calls itself can end it.
std::string to_markdown(const Report& report, std::string_view where) {
  const auto cause = report.verdict.substr(0, report.verdict.find_first_of(":(/"));
  auto text = fmt::format("**pid {}: {}**\n\n", report.pid, base::trim(cause));
  const auto all = fmt::format("{}\n{}\n\n{}", where, first_line(report), details(report));
  for (const auto line : base::split(all, '\n')) {
    text += line.empty() ? "\n" : fmt::format("    {}\n", line);
  }
  return text;
}

}  // namespace pyinject::why
