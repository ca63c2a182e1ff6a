#include "weave/sample_periods.hpp"

#include "base/byte_cursor.hpp"
#include "perfdata/sample_parser.hpp"
#include "weave/recorded_processes.hpp"

#include <algorithm>

namespace pyinject::weave {

namespace {

using perfdata::Record;

// Without switch records, all threads would seem to be off-CPU until the end.
bool has_switches(const perfdata::Input& input) {
  return std::ranges::any_of(input.events(),
                             [](const auto& event) { return event.attr.context_switch != 0; });
}

}  // namespace

SamplePeriods::SamplePeriods(const WeaveOptions& options, const RecordingContext& context,
                             const perfdata::Input& input, Tally& tally)
    : options_{options},
      context_{context},
      input_{input},
      summary_{tally.summary},
      has_off_cpu_{options.flags.off_cpu && has_switches(input)} {
  if (options_.flags.off_cpu) {
    choose_switches();
  }
  choose_calls();
  choose_memory_calls();
}

void SamplePeriods::choose_switches() {
  std::vector<const perfdata::Event*> events;
  for (const auto& event : input_.events()) {
    if (event.samples_each_switch()) {
      events.push_back(&event);
    }
  }
  each_switch_ = events.size() == 1 ? events.front() : nullptr;
  if (!has_off_cpu_) {
    summary_.no_off_cpu = NoOffCpu::kNoSwitches;
  } else if (std::ranges::all_of(
                 events, [](const auto* event) { return event->attr.exclude_kernel != 0; })) {
    summary_.no_off_cpu = NoOffCpu::kOnlyInUserSpace;
  }
}

// An event without a period for each hit has no pairs. A user's own event of the same tracepoint
// precedes this tool's, and stays as it is.
const perfdata::Event* SamplePeriods::event_of_each_hit(std::uint64_t tracepoint) const {
  const perfdata::Event* found = nullptr;
  for (const auto& event : input_.events()) {
    found = event.samples_each_hit_of(tracepoint) ? &event : found;
  }
  return found;
}

void SamplePeriods::choose_calls() {
  const auto& wanted = options_.flags.timed_calls;
  for (std::size_t i = 0; i < std::min(wanted.size(), CallDurations::kMostCalls); ++i) {
    const auto* const enter = event_of_each_hit(wanted[i].enter);
    const auto* const exit = event_of_each_hit(wanted[i].exit);
    if (enter != nullptr && exit != nullptr) {
      call_events_.emplace(enter, CallEvent{.call = i, .is_end = false});
      call_events_.emplace(exit, CallEvent{.call = i, .is_end = true});
    }
  }
}

void SamplePeriods::choose_memory_calls() {
  for (const auto& call : options_.flags.memory_calls) {
    const auto* const enter = event_of_each_hit(call.enter);
    const auto* const exit = event_of_each_hit(call.exit);
    const MemoryEvent event{.kind = call.kind, .is_end = false};
    if (enter == nullptr || (exit == nullptr && !event.of_allocator())) {
      continue;
    }
    memory_events_.emplace(enter, event);
    if (exit != nullptr) {
      memory_events_.emplace(exit, MemoryEvent{.kind = call.kind, .is_end = true});
    }
  }
}

void SamplePeriods::learn(const Record& record) {
  const auto time = has_off_cpu_ || !call_events_.empty() ? input_.time_of(record) : std::nullopt;
  if (time && has_off_cpu_) {
    learn_switches(record, *time);
  }
  if (time && !call_events_.empty()) {
    learn_calls(record, *time);
  }
}

void SamplePeriods::learn_switches(const Record& record, std::uint64_t time) {
  off_cpu_.ends(time);
  if (time != 0 && time >= options_.begun_at) {
    first_time_ = first_time_ == 0 ? time : std::min(first_time_, time);
  }
  if (record.type == PERF_RECORD_SAMPLE) {
    const auto head = each_switch_ != nullptr && input_.event_of(record) == each_switch_
                          ? input_.head_of(record)
                          : std::nullopt;
    if (head && is_thread(head->tid)) {
      off_cpu_.is_sampled(head->tid, time);
    }
  } else if (const auto task = perfdata::parse_task(record); task) {
    if (record.type == PERF_RECORD_EXIT) {
      off_cpu_.exits(task->tid, task->time);
    } else {
      off_cpu_.begins(task->tid, task->time);
    }
  } else if (const auto command = perfdata::parse_command(record); command && command->exec) {
    off_cpu_.begins(command->tid, time);
  } else if (record.type == PERF_RECORD_SWITCH || record.type == PERF_RECORD_SWITCH_CPU_WIDE) {
    const auto tid = input_.thread_of(record);
    if (!tid || !is_thread(*tid)) {
      return;
    }
    if ((record.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0) {
      off_cpu_.takes_processor(*tid, time);
    } else {
      off_cpu_.leaves_processor(*tid, time,
                                (record.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0);
    }
  }
}

void SamplePeriods::learn_calls(const Record& record, std::uint64_t time) {
  calls_.ends(time);
  if (record.type != PERF_RECORD_SAMPLE) {
    if (const auto task = perfdata::parse_task(record); task && record.type == PERF_RECORD_EXIT) {
      calls_.exits(task->tid, task->time);
    } else if (record.type == PERF_RECORD_LOST || record.type == PERF_RECORD_UNTHROTTLE) {
      // The thread whose sample is the first one again: as a rule the one with the losses.
      const auto tid = input_.thread_of(record);
      tid ? calls_.loses(*tid, time) : void();
    }
    return;
  }
  const auto* const event = input_.event_of(record);
  const auto head = input_.head_of(record);
  if (!head || !is_thread(head->tid) || (context_.wanted && !context_.wanted(head->pid))) {
    return;
  }
  if (const auto found = call_events_.find(event); found != call_events_.end()) {
    const auto& [call, is_end] = found->second;
    is_end ? calls_.leaves(head->tid, time, call) : calls_.enters(head->tid, time, call);
  } else if (event->attr.type !=
                 PERF_TYPE_TRACEPOINT &&  // a tracepoint may have the user's address
             (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
    calls_.runs(head->tid, time);
  }
}

void SamplePeriods::complete(perfdata::Input& input) {
  off_cpu_.ends(options_.ended_at);
  off_cpu_.complete();
  calls_.ends(options_.ended_at);
  calls_.complete();
  learn_memory(input);
}

// A pass of its own: these samples are read whole.
void SamplePeriods::learn_memory(perfdata::Input& input) {
  if (memory_events_.empty()) {
    return;
  }
  input.rewind();
  perfdata::Sample sample;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  while (const auto record = input.next()) {
    if (record->type == PERF_RECORD_SAMPLE) {
      if (memory_events_.contains(input_.event_of(*record)) && input.parse(*record, sample)) {
        learn_memory_call(sample);
        first = first == 0 ? sample.time : std::min(first, sample.time);
        last = std::max(last, sample.time);
      }
    } else if (const auto task = perfdata::parse_task(*record);
               task && record->type == PERF_RECORD_EXIT && task->pid == task->tid) {
      kept_.ends(task->pid, task->time);
      blocks_.ends(task->pid, task->time);
    } else if (const auto command = perfdata::parse_command(*record); command && command->exec) {
      kept_.ends(command->pid, input_.time_of(*record).value_or(0));
      blocks_.ends(command->pid, input_.time_of(*record).value_or(0));
    }
  }
  // A recording ends in the middle of what the program does, and shows all memory in use then.
  constexpr std::uint64_t kTenth = 10;
  const auto begin = options_.begun_at != 0 ? options_.begun_at : first;
  const auto end = std::max(options_.ended_at, last);
  const auto young_since = end - (end - std::min(begin, end)) / kTenth;
  kept_.complete(young_since);
  blocks_.complete(young_since);
  summary_.mapped_bytes = kept_.mapped();
  summary_.young_bytes = kept_.young();
  summary_.unknown_breaks = kept_.unknown();
  summary_.allocated_bytes = blocks_.mapped();
  summary_.young_blocks_bytes = blocks_.young();
  summary_.memory_calls_cut = kept_.full() || blocks_.full();
}

// struct syscall_trace_enter and syscall_trace_exit (linux, include/trace/syscall.h): after 8
// common bytes and the number of the call its arguments, or what it returns, as words. A uprobe
// event has the address of the probe in place of the number (kernel/trace/trace_uprobe.c).
void SamplePeriods::learn_memory_call(const perfdata::Sample& sample) {
  constexpr std::size_t kArguments = 16;
  if (!is_thread(sample.tid) || (context_.wanted && !context_.wanted(sample.pid))) {
    return;
  }
  base::ByteCursor cursor{perfdata::payload_of(sample)};
  cursor.take(kArguments);
  const auto& event = memory_events_.at(sample.event);
  const auto kind = event.kind;
  const KeptMappings::Thread thread{.pid = sample.pid, .tid = sample.tid};
  if (event.is_end) {
    const auto result = cursor.number<std::uint64_t>();
    if (!cursor.failed()) {
      kept_.leaves(thread, sample.time, kind, result);
    }
    return;
  }
  KeptMappings::Arguments arguments{};
  const std::size_t count = kind == MemoryCall::Kind::kBreak || kind == MemoryCall::Kind::kFree ? 1
                            : kind == MemoryCall::Kind::kUnmap                                  ? 2
                                                                                                : 3;
  for (std::size_t i = 0; i < count; ++i) {
    arguments[i] = cursor.number<std::uint64_t>();
  }
  if (!cursor.failed()) {
    (event.of_allocator() ? blocks_ : kept_).enters(thread, sample.time, kind, arguments);
  }
}

bool SamplePeriods::changes(const perfdata::Event& event) const {
  const auto is_entered = [&](const auto& each) {
    return !each.second.is_end && event.samples_each_hit_of(each.first->attr.config);
  };
  return (has_off_cpu_ && event.samples_each_switch()) ||
         std::ranges::any_of(call_events_, is_entered) ||
         std::ranges::any_of(memory_events_, is_entered);
}

bool SamplePeriods::is_left_out(const Record& record) const {
  if (!call_events_.empty()) {
    const auto found = call_events_.find(input_.event_of(record));
    if (found != call_events_.end() && found->second.is_end) {
      return true;
    }
  }
  return keeps_no_memory(record);
}

bool SamplePeriods::keeps_no_memory(const perfdata::Record& record) const {
  if (memory_events_.empty()) {
    return false;
  }
  const auto found = memory_events_.find(input_.event_of(record));
  if (found == memory_events_.end()) {
    return false;
  }
  const auto head = input_.head_of(record);
  const auto time = input_.time_of(record);
  const auto& kept = found->second.of_allocator() ? blocks_ : kept_;
  return !found->second.owns() || !head || !time || kept.of(head->tid, *time) == 0;
}

SamplePeriods::Period SamplePeriods::of(const perfdata::Sample& sample) {
  if (!is_thread(sample.tid)) {
    return {};
  }
  if (has_off_cpu_ && sample.event->samples_each_switch()) {
    const auto absence = off_cpu_.absence(sample.tid, sample.time);
    if (!absence) {
      return {.value = 1};
    }
    ++summary_.off_cpu;
    return {.value = absence->nanoseconds, .preempted = absence->preempted};
  }
  if (const auto memory = memory_events_.find(sample.event); memory != memory_events_.end()) {
    const bool block = memory->second.of_allocator();
    const auto bytes = (block ? blocks_ : kept_).of(sample.tid, sample.time);
    (block ? summary_.kept_blocks_bytes : summary_.kept_bytes) += bytes;
    return {.value = bytes};
  }
  const auto event = call_events_.empty() ? call_events_.end() : call_events_.find(sample.event);
  if (event == call_events_.end()) {
    return {};
  }
  const auto duration = calls_.of(sample.tid, sample.time, event->second.call);
  if (!duration) {
    ++summary_.untimed_calls;
    return {.value = 1};
  }
  ++summary_.timed_calls;
  summary_.lasting_calls += duration->lasts ? 1 : 0;
  return {.value = duration->nanoseconds};
}

std::optional<OffCpu::FirstWait> SamplePeriods::first_wait(const WaitingThread& thread) const {
  const auto begin = options_.begun_at != 0 ? options_.begun_at : first_time_;
  auto wait = off_cpu_.first_wait(thread.tid, begin, thread.seen);
  if (wait && each_switch_ == nullptr && wait->begin != begin) {
    return std::nullopt;  // several events sample switches: one of them has this wait
  }
  if (wait && !wait->until && thread.throughout && begin != 0 && !options_.followed) {
    wait->until = off_cpu_.end();
  }
  return wait;
}

}  // namespace pyinject::weave
