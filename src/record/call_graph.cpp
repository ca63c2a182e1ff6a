#include "record/call_graph.hpp"

#include "base/text.hpp"
#include "procfs/status.hpp"
#include "procfs/sysctl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>

#include <unistd.h>

namespace pyinject::record {

namespace {

using Kind = perf::ChosenCallGraph::Kind;

constexpr std::uint64_t kReserve = 8192;  // stack growth to expect beyond the use at the attach
constexpr std::uint64_t kLeastDump = 16384;
constexpr std::uint64_t kMostDump = 65528;  // the kernel's limit, a multiple of 8
// Holds thirty to seventy Python calls; 131 MB/s at perf's default frequency.
constexpr std::uint64_t kDumpOfLaunched = 32768;
constexpr std::uint64_t kMostWritten = kDumpOfLaunched * 4000;  // bytes per second and processor
constexpr std::uint64_t kBufferOfPerf = std::uint64_t{512} << 10U;
constexpr std::uint64_t kBuffersASecond = 20;      // how often perf is sure to read each buffer
constexpr std::uint64_t kBytesOfCall = 1024;       // C stack of a Python call through a trampoline
constexpr std::size_t kEntriesOfCall = 3;          // C frames per Python call, with frame pointers
constexpr std::size_t kOtherEntries = 30;          // libc, start of the interpreter, C functions
constexpr std::uint64_t kDefaultFrequency = 4000;  // perf's, samples per second and processor

std::string who(const CallGraphFacts& target) {
  return fmt::format("pid {} (Python {})", target.pid.value(), python::to_string(target.version));
}

std::size_t wanted_entries(const CallGraphFacts& target) {
  return target.python_calls * kEntriesOfCall + kOtherEntries;
}

// Dump size for stacks as deep as TARGET's, not capped.
std::uint64_t needed_bytes(const CallGraphFacts& target) {
  const auto used = std::min(target.stack_bytes.value_or(0), std::uint64_t{1} << 30U);
  return used + std::max(kReserve, target.python_calls * kBytesOfCall);
}

std::string without_frame_pointers(const CallGraphFacts& target) {
  return target.frame_pointers ? fmt::format("{} of {} was built without frame pointers",
                                             base::printable(target.extension_without.substr(
                                                 target.extension_without.rfind('/') + 1)),
                                             who(target))
                               : who(target) + " was built without frame pointers";
}

std::string cut_at(const CallGraphFacts& target, std::uint64_t dump) {
  return fmt::format(
      "{} uses {} bytes of stack for {}: the outermost functions, more than {} bytes up, will be "
      "cut off",
      who(target), target.stack_bytes.value_or(0),
      base::counted(target.python_calls, "Python call"), dump);
}

CallGraphChoice copy_stacks(const std::string& reason, std::uint64_t dump,
                            const CallGraphWishes& wishes) {
  CallGraphChoice choice{.arguments = {"--call-graph", fmt::format("dwarf,{}", dump)},
                         .note = fmt::format("{}: --call-graph dwarf,{}", reason, dump)};
  if (wishes.buffer_bytes != 0) {
    choice.arguments.insert(choice.arguments.end(),
                            {"-m", fmt::format("{}K", wishes.buffer_bytes >> 10U)});
  }
  if (!wishes.frequency_chosen) {
    // At a lower frequency, perf can copy a larger part of each stack.
    constexpr std::uint64_t kLow = 99;
    auto low = wishes;
    low.frequency = kLow;
    choice.note += fmt::format(
        ", up to {} MB a second for each busy processor until it is post-processed (-F {}: {} MB)",
        dump * kDefaultFrequency / 1'000'000, kLow,
        std::max(dump, affordable_dump(low)) * kLow / 1'000'000);
  }
  return choice;
}

CallGraphChoice judge_own_choice(const std::vector<CallGraphFacts>& targets,
                                 const CallGraphWishes& wishes) {
  CallGraphChoice choice;
  const auto& chosen = *wishes.chosen;
  for (const auto& target : targets) {
    if (chosen.kind == Kind::kFramePointers && !target.frame_pointers) {
      choice.note = without_frame_pointers(target) +
                    ": with -g only the innermost function of a sample is known, and no Python "
                    "function that called it; omit -g";
    } else if (chosen.kind == Kind::kFramePointers && !target.extension_without.empty()) {
      choice.note =
          without_frame_pointers(target) + ": with -g its callers may be missing; omit -g";
    } else if (chosen.kind == Kind::kFramePointers &&
               wanted_entries(target) > wishes.most_entries) {
      choice.note = fmt::format(
          "{} is {} Python calls deep, about {} entries of a callchain: the limit is {} (sysctl "
          "kernel.perf_event_max_stack), the outermost will be cut off",
          who(target), target.python_calls, wanted_entries(target), wishes.most_entries);
    } else if (chosen.kind == Kind::kDwarf && needed_bytes(target) > chosen.dump_bytes) {
      choice.note = cut_at(target, chosen.dump_bytes);
      if (chosen.dump_bytes < kMostDump) {
        choice.note += fmt::format("; --call-graph dwarf,{} reaches further", wanted_dump(target));
      }
    }
    if (!choice.note.empty()) {
      choice.complete = false;
      return choice;
    }
  }
  return choice;
}

}  // namespace

std::uint64_t wanted_dump(const CallGraphFacts& target) {
  const std::uint64_t rounded = (needed_bytes(target) + 1023) / 1024 * 1024;
  return std::clamp(rounded, kLeastDump, kMostDump);
}

std::uint64_t affordable_dump(const CallGraphWishes& wishes) {
  const auto frequency = std::max<std::uint64_t>(wishes.frequency.value_or(kDefaultFrequency), 1);
  const auto buffer = wishes.buffer_bytes == 0 ? kBufferOfPerf : wishes.buffer_bytes;
  const auto bytes = std::min(kMostWritten, buffer * kBuffersASecond) / frequency;
  return std::clamp(bytes / 1024 * 1024, kLeastDump, kMostDump);
}

bool needs_stack_use(const CallGraphFacts& target, const CallGraphWishes& wishes) {
  if (wishes.chosen) {
    return wishes.chosen->kind == Kind::kDwarf;
  }
  return !target.frame_pointers || !target.extension_without.empty() ||
         wanted_entries(target) > wishes.most_entries;
}

std::string why_not_callchains(const CallGraphFacts& target, const CallGraphWishes& wishes) {
  return !target.frame_pointers || !target.extension_without.empty()
             ? without_frame_pointers(target)
             : fmt::format("{} is {} Python calls deep, more than {} entries of a callchain hold",
                           who(target), target.python_calls, wishes.most_entries);
}

CallGraphChoice choose_call_graph(const std::vector<CallGraphFacts>& targets,
                                  const CallGraphWishes& wishes) {
  if (wishes.chosen) {
    return judge_own_choice(targets, wishes);
  }
  if (targets.empty()) {
    return {
        .arguments = {"--call-graph", "fp"},
        .note =
            "no Python runs yet: using --call-graph fp; Pythons without frame pointers then show "
            "only the innermost function (--call-graph dwarf,16384 shows all)"};
  }
  const auto without = std::ranges::find_if(targets, [](const auto& target) {
    return !target.frame_pointers || !target.extension_without.empty();
  });
  const auto deepest = std::ranges::max_element(targets, {}, &CallGraphFacts::python_calls);
  if (without == targets.end() && wanted_entries(*deepest) <= wishes.most_entries) {
    return {.arguments = {"--call-graph", "fp"}, .note = {}};
  }
  const auto largest = std::ranges::max_element(targets, {}, needed_bytes);
  const auto dump = std::max(wanted_dump(*largest), affordable_dump(wishes));
  const auto& needed = without != targets.end() ? *without : *deepest;
  auto choice = copy_stacks(why_not_callchains(needed, wishes), dump, wishes);
  if (needed_bytes(*largest) > dump) {
    choice.complete = false;
    choice.note += "; " + cut_at(*largest, dump);
  }
  return choice;
}

CallGraphChoice choose_for_sampled(const CallGraphWishes& wishes) {
  CallGraphChoice choice;
  if (!wishes.chosen) {
    choice.arguments = {"--call-graph", "fp"};
    if (!wishes.others) {
      choice.arguments.emplace_back("--kernel-callchains");
    }
    return choice;
  }
  if (wishes.chosen->kind == Kind::kNone) {
    choice.note = "without a call graph, samples have no Python functions: omit the option";
    choice.complete = false;
  } else if (wishes.chosen->kind == Kind::kOther) {
    choice.note = "with this --call-graph, samples have no Python functions: omit the option";
    choice.complete = false;
  }
  return choice;
}

CallGraphChoice choose_for_launched(const LaunchedFacts& launched, const CallGraphWishes& wishes) {
  const bool without = launched.frame_pointers == std::optional{false};
  const auto built = launched.name + " was built without frame pointers";
  if (wishes.chosen) {
    CallGraphChoice choice;
    if (without && wishes.chosen->kind == Kind::kFramePointers) {
      choice.note = built +
                    ": with -g only the innermost function of a sample is known, and no Python "
                    "function that called it; omit -g";
      choice.complete = false;
    }
    return choice;
  }
  if (launched.frame_pointers == std::optional{true}) {
    return {.arguments = {"--call-graph", "fp"}, .note = {}};
  }
  return copy_stacks(without ? built : launched.name + ": its Python is not known yet",
                     wishes.frequency_chosen ? kMostDump : kDumpOfLaunched, wishes);
}

std::uint64_t affordable_buffer() {
  constexpr std::uint64_t kIpcLock = std::uint64_t{1} << 14U;
  constexpr std::uint64_t kOfAll = std::uint64_t{512} << 20U;
  constexpr std::uint64_t kMost = std::uint64_t{8} << 20U;
  const auto own = procfs::read_status(base::Pid{::getpid()});
  const auto processors = std::max(::sysconf(_SC_NPROCESSORS_CONF), 1L);
  if (!own || (own->effective_capabilities & kIpcLock) == 0) {
    return 0;
  }
  const auto share = std::bit_floor(kOfAll / static_cast<std::uint64_t>(processors));
  return share >= kMost / 8 ? std::min(share, kMost) : 0;
}

std::size_t most_callchain_entries() {
  constexpr std::size_t kUsual = 127;
  const auto text = procfs::read_sysctl("kernel.perf_event_max_stack");
  return text ? base::parse_number<std::size_t>(*text).value_or(kUsual) : kUsual;
}

}  // namespace pyinject::record
