// Who is recorded: those who are there at the beginning, and those who come later.
#include "base/format.hpp"
#include "pyinject/procfs/stat.hpp"
#include "pyinject/session/call_graph.hpp"
#include "pyinject/session/target_selection.hpp"
#include "session/extension_modules.hpp"
#include "session/recorder.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <unistd.h>

namespace pyinject::session {

std::optional<int> Recorder::choose_targets() {
  if (options_.launch) {
    hold_command();
    return std::nullopt;
  }
  if (options_.all || options_.children) {  // before the first look: nobody is missed
    raise_descriptor_limit();
    process_watch_ = watch::watch_processes(logger_);
  }
  const bool named = !options_.all;
  chosen_ = named && !options_.children ? without_repetitions(options_.pids)
                                        : population_.choose(visible_processes());
  auto selection = options_.children ? choose_families() : manager_->select(chosen_, named);
  if (options_.strict && named && !selection.complete) {
    return kFailure;
  }
  if (selection.targets.empty()) {
    if (named) {
      logger_.error("none of the processes can be activated");
      return kFailure;
    }
    logger_.warning("no Python process that can be activated is visible");
  }
  if (named) {
    for (const auto pid : chosen_) {  // lenient: also those without names, if they are there
      record_also(pid);
    }
  }
  targets_ = std::move(selection.targets);
  no_pythons_ = std::move(selection.no_pythons);
  if (!process_watch_ && std::ranges::any_of(targets_, &python::Target::foreign_namespace)) {
    process_watch_ = watch::watch_processes(logger_);  // the maps of what they fork go with them
  }
  return std::nullopt;
}

void Recorder::record_also(base::Pid pid) {
  if (const auto id = procfs::read_process_id(pid)) {
    pids_.push_back(pid);
    watch_.add(*id);
  }
}

// The targets and their descendants, but for perf, which is one when a target started us.
std::vector<base::Pid> Recorder::families() {
  auto pids = population_.choose(visible_processes());
  std::erase_if(pids, [](base::Pid pid) {
    const auto stat = procfs::read_stat(pid);
    return !stat || stat->parent.value() == ::getpid();
  });
  return pids;
}

// Members of the families that perf has not been told of: true when there is one.
bool Recorder::find_newborn() {
  bool found = false;
  for (const auto pid : families()) {
    if (std::ranges::find(chosen_, pid) == chosen_.end()) {
      chosen_.push_back(pid);
      record_also(pid);
      found = true;
    }
  }
  return found;
}

// Those that the user has named must be Python; their descendants need not.
Selection Recorder::choose_families() {
  const auto roots = without_repetitions(options_.pids);
  auto selection = manager_->select(roots);
  std::vector<base::Pid> descendants;
  for (const auto pid : chosen_) {
    if (std::ranges::find(roots, pid) == roots.end()) {
      descendants.push_back(pid);
    }
  }
  auto others = manager_->select(descendants, false);
  std::ranges::move(others.targets, std::back_inserter(selection.targets));
  selection.no_pythons.merge(others.no_pythons);
  for (const auto pid : roots) {
    if (std::ranges::find(chosen_, pid) == chosen_.end()) {
      chosen_.push_back(pid);
    }
  }
  return selection;
}

void Recorder::choose_call_graph() {
  if (!perf::chosen_clock(options_.perf_options)) {
    own_options_ = {"-k", "mono"};
  }
  if (options_.off_cpu) {
    // Each switch of a thread is a sample; the records of switches tell when it ran again.
    if (!perf::chooses_event(options_.perf_options)) {
      own_options_.insert(own_options_.end(), {"-e", "cycles"});
    }
    own_options_.insert(own_options_.end(),
                        {"-e", "context-switches/period=1/", "--switch-events"});
  }
  if (targets_.empty() && !options_.all && !options_.launch) {
    return;
  }
  const CallGraphWishes wishes{
      .chosen = perf::chosen_call_graph(options_.perf_options),
      .frequency_chosen = perf::chooses_frequency(options_.perf_options),
      .most_entries = most_callchain_entries(),
      .buffer_bytes = perf::chooses_buffers(options_.perf_options) ? 0 : affordable_buffer()};
  if (sampler_ != nullptr) {
    choose_call_graph_of_sampled(wishes);
    return;
  }
  if (options_.launch) {
    choose_call_graph_of_launched(wishes);
    return;
  }
  ExtensionModules extensions;
  std::vector<CallGraphFacts> facts;
  for (const auto& target : targets_) {
    CallGraphFacts one{
        .pid = target.id.pid, .version = target.version, .frame_pointers = target.frame_pointers};
    if (target.frame_pointers) {
      one.extension_without = extensions.without_frame_pointers(target.id.pid).value_or("");
    }
    auto reader = python::StackReader::of(target);
    if (auto* const stacks = std::get_if<python::StackReader>(&reader)) {
      for (const auto& stack : stacks->read()) {
        one.python_calls = std::max(one.python_calls, stack.frames.size());
      }
    }
    if (needs_stack_use(one, wishes)) {
      const auto use = injector_.stack_use(target, kStackUse);
      if (const auto* bytes = std::get_if<python::StackUse>(&use)) {
        one.stack_bytes = bytes->bytes;
      }
    }
    facts.push_back(one);
  }
  take(session::choose_call_graph(facts, wishes));
}

void Recorder::choose_call_graph_of_sampled(const CallGraphWishes& wishes) {
  ExtensionModules extensions;
  std::vector<CallGraphFacts> facts;
  for (const auto& target : targets_) {
    CallGraphFacts one{
        .pid = target.id.pid, .version = target.version, .frame_pointers = target.frame_pointers};
    if (target.frame_pointers && !wishes.chosen) {
      one.extension_without = extensions.without_frame_pointers(target.id.pid).value_or("");
    }
    facts.push_back(one);
  }
  take(choose_for_sampled(facts, wishes));
}

void Recorder::take(const CallGraphChoice& choice) {
  own_options_.insert(own_options_.end(), choice.arguments.begin(), choice.arguments.end());
  if (!choice.note.empty()) {
    logger_.log(choice.complete ? base::LogLevel::kInfo : base::LogLevel::kWarning, choice.note);
  }
}

void Recorder::follow_arrivals() {
  if (!process_watch_) {
    return;
  }
  arrivals_ = std::make_unique<Arrivals>(
      std::move(process_watch_), detector_, *manager_, logger_, population_,
      ArrivalListener{
          .forked = [this](base::Pid child) { distant_maps_.keep(child); },
          .ended = [this](base::Pid pid,
                          std::optional<ActiveTarget> active) { ended(pid, std::move(active)); }});
  std::vector<base::Pid> pythons;
  for (const auto& active : manager_->active()) {
    pythons.push_back(active.target.id.pid);
  }
  arrivals_->leave_out(perf_->pid());
  arrivals_->know(pythons);
  if (!options_.launch) {  // else COMMAND is held back, and runs this tool's program
    auto pids = chosen_;
    std::erase_if(pids, [this](base::Pid pid) { return no_pythons_.contains(pid); });
    arrivals_->look_again(pids);
  }
}

void Recorder::ended(base::Pid pid, std::optional<ActiveTarget> active) {
  if (const auto map = distant_maps_.take(pid); map.valid()) {
    collect_map(map.get(), pid);
  }
  if (!active) {
    return;
  }
  frames_.forget(pid);
  if (active->activation.map.valid()) {
    collect_map(active->activation.map.get(), pid);
  }
  if (guard_) {
    guard_->forget(active->target);
  }
}

}  // namespace pyinject::session
