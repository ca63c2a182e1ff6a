#include "record/engine_preference.hpp"

#include "base/text.hpp"
#include "bpf/greenlet_module.hpp"
#include "procfs/maps.hpp"
#include "procfs/stat.hpp"
#include "pyinject/base/deadline.hpp"
#include "pyinject/python/stack_reader.hpp"
#include "pyinject/targets/target_selection.hpp"
#include "python/layout/version_policy.hpp"
#include "record/command_interpreter.hpp"
#include "record/roster.hpp"
#include "targets/examine_all.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::record {

namespace {

using python::Reason;

constexpr std::size_t kForksMuch = 2;  // children
constexpr int kReadsOfStacks = 5;      // at the stacks of a target

std::string why_bpf(const TrampolineFit& target) {
  const auto pid = target.pid.value();
  const auto version = python::to_string(target.version);
  if (!target.obstacle.empty()) {
    return fmt::format("pid {}: {}", pid, target.obstacle);
  }
  if (!target.main_runs_python) {
    return fmt::format(
        "the main thread of pid {} runs no Python function: the trampoline would "
        "wait until it does",
        pid);
  }
  if (target.python_threads > 1 && python::unmaps_used_arenas(target.version)) {
    return fmt::format(
        "pid {} (Python {}) has {} Python threads: with the trampoline, it can crash "
        "if it exits during the recording while daemon threads run (cpython "
        "gh-143228)",
        pid, version, target.python_threads);
  }
  if (target.greenlets) {
    return fmt::format("pid {} has greenlets, whose callers the trampoline does not show", pid);
  }
  if (target.forked >= kForksMuch) {
    return fmt::format(
        "pid {} (Python {}) has forked {} running processes: those that it forks "
        "during the recording would inherit the trampoline{}",
        pid, version, target.forked,
        python::activates_once(target.version)
            ? ", and later recordings could not switch it on in new ones"
            : "");
  }
  if (target.executed != 0) {
    return fmt::format(
        "pid {} starts Python processes by exec: of such a process, the trampoline would miss what "
        "it does before it is found and ready",
        pid);
  }
  return {};
}

// The process is none that the trampoline could be wanted for, or BPF can do no more. LATE: the
// trampoline takes processes as soon as they are ready.
bool concerns_both(Reason reason, bool late) {
  return python::has_gone(reason) || (late && reason == Reason::kNotInitialized) ||
         reason == Reason::kNotPython || reason == Reason::kKernelThread ||
         reason == Reason::kOwnProcess || reason == Reason::kNoPermission ||
         reason == Reason::kNotExamined || reason == Reason::kFinalizing;
}

// A server may be idle at one moment and deep in a request at the next.
void look_at_stacks(const python::Target& target, TrampolineFit& fit) {
  auto reader = python::StackReader::of(target);
  auto* const stacks = std::get_if<python::StackReader>(&reader);
  bool main_seen = stacks == nullptr;
  for (int look = 0; stacks != nullptr && look < kReadsOfStacks; ++look) {
    const auto threads = stacks->read();
    const auto main = stacks->main_thread();
    fit.python_threads = std::max(fit.python_threads, threads.size());
    main_seen = main_seen || !main ||
                std::ranges::find(threads, *main, &python::ThreadStack::tid) != threads.end() ||
                std::ranges::find(stacks->unread(), *main) != stacks->unread().end();
  }
  fit.main_runs_python = main_seen;
}

TrampolineFit fit_of(const python::Target& target) {
  TrampolineFit fit{.pid = target.id.pid, .version = target.version};
  if (target.state != python::TrampolineState::kOff) {  // what it may do, it does already
    return fit;
  }
  const std::size_t told = target.untested ? 1 : 0;  // of any engine
  if (target.warnings.size() > told) {
    fit.obstacle = target.warnings.back();
  }
  look_at_stacks(target, fit);
  const auto maps = procfs::read_maps(target.id.pid);
  fit.greenlets = maps && bpf::find_greenlet_module(*maps) != nullptr;
  return fit;
}

// DETECTION: by the trampoline's detector. nullopt: the process is no concern of the choice. One
// that is not a target has an obstacle.
std::optional<TrampolineFit> fit_of(base::Pid pid, const python::Detection& detection,
                                    python::Detector& observer, bool late,
                                    const base::Cancellation& cancellation) {
  if (const auto* const target = std::get_if<python::Target>(&detection)) {
    return fit_of(*target);
  }
  const auto& refusal = std::get<python::Refused>(detection).refusal;
  if (concerns_both(refusal.reason, late)) {
    return std::nullopt;
  }
  const auto observed = observer.detect(pid, cancellation);
  const auto* const target = std::get_if<python::Target>(&observed);
  if (target == nullptr) {
    return std::nullopt;
  }
  return TrampolineFit{.pid = pid,
                       .version = target->version,
                       .obstacle = fmt::format("{} ({})", python::meaning(refusal.reason),
                                               python::name(refusal.reason))};
}

// Sets `forked` of FITS and, if their children are recorded, too, `executed`. Reads /proc.
void count_children(const std::vector<python::Target>& targets, bool families,
                    std::vector<TrampolineFit>& fits) {
  std::vector<base::Pid> pids(targets.size());
  std::ranges::transform(targets, pids.begin(),
                         [](const python::Target& target) { return target.id.pid; });
  for (const auto child : targets::children_of(pids)) {
    const auto stat = procfs::read_stat(child);
    for (const auto& target : targets) {
      if (!stat || stat->parent != target.id.pid) {
        continue;
      }
      auto& fit = *std::ranges::find(fits, target.id.pid, &TrampolineFit::pid);
      if (stat->stack_begin == target.stack_begin) {  // exec places the stack elsewhere
        ++fit.forked;
      } else if (families && std::ranges::find(pids, child) != pids.end()) {
        ++fit.executed;
      }
    }
  }
}

// Events whose samples perf decodes afterwards, from data in which no BPF program runs.
bool records_aux(const perf::PerfOptions& options) {
  static constexpr auto kDevices =
      std::to_array<std::string_view>({"intel_pt", "intel_bts", "arm_spe", "cs_etm"});
  return std::ranges::any_of(options.words(), [](const std::string& word) {
    return std::ranges::any_of(
        kDevices, [&](std::string_view device) { return word.find(device) != std::string::npos; });
  });
}

std::string why_bpf_for_command(const RecordPlan& plan) {
  const char* const path = std::getenv("PATH");
  const auto interpreter =
      find_command_interpreter(plan.command, path == nullptr ? "/bin:/usr/bin" : path);
  const auto refusal = interpreter ? interpreter->file.refusal : std::nullopt;
  const bool observable = refusal && (refusal->reason == Reason::kBadPatchRelease ||
                                      refusal->reason == Reason::kFreeThreaded ||
                                      refusal->reason == Reason::kBrokenTrampoline ||
                                      refusal->reason == Reason::kNoPerfTrampoline);
  return observable ? fmt::format("{}: {} ({})", base::printable(interpreter->name),
                                  python::meaning(refusal->reason), python::name(refusal->reason))
                    : "";
}

}  // namespace

std::string why_bpf(std::span<const TrampolineFit> targets) {
  for (const auto& target : targets) {
    if (auto why = why_bpf(target); !why.empty()) {
      return why;
    }
  }
  return {};
}

std::string why_bpf(const RecordPlan& plan, python::Detector& detector,
                    const base::Cancellation& cancellation) {
  if (records_aux(plan.perf_options)) {
    return {};
  }
  if (plan.flags.lines) {
    return "--lines: the trampoline has lines only of functions that were entered before";
  }
  if (plan.launches()) {
    return why_bpf_for_command(plan);
  }
  Roster roster{plan};
  roster.choose();
  const auto& pids = roster.chosen();
  const auto patience = plan.whole_system() ? targets::kPatienceUnnamed : targets::kPatienceNamed;
  const auto examined = targets::examine_all(detector, pids, cancellation, patience);
  const auto observer = python::make_detector(python::Purpose::kObserve);
  const auto deadline = base::Deadline::after(patience);
  std::vector<python::Target> targets;
  std::vector<TrampolineFit> fits;
  for (std::size_t i = 0; i < pids.size() && !deadline.expired(); ++i) {
    if (cancellation.stopped()) {
      return {};
    }
    const auto fit =
        fit_of(pids[i], examined[i].detection, *observer, plan.expects_more(), cancellation);
    if (!fit) {
      continue;
    }
    if (auto why = why_bpf(*fit); !why.empty()) {
      return why;
    }
    fits.push_back(*fit);
    targets.push_back(std::get<python::Target>(examined[i].detection));
  }
  if (!plan.whole_system()) {
    count_children(targets, plan.families(), fits);
  }
  return why_bpf(fits);
}

}  // namespace pyinject::record
