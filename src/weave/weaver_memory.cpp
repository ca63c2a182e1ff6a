// The memory that system calls have mapped, and whether it is still mapped at the end; likewise the
// blocks that allocators tell.
#include "base/byte_cursor.hpp"
#include "perfdata/sample_parser.hpp"
#include "weave/weaver.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace pyinject::weave {

void Weaver::choose_memory_calls() {
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

// A pass of its own: these samples are read whole.
void Weaver::learn_memory() {
  if (memory_events_.empty()) {
    return;
  }
  input_.rewind();
  perfdata::Sample sample;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  while (const auto record = input_.next()) {
    if (record->type == PERF_RECORD_SAMPLE) {
      if (memory_events_.contains(input_.event_of(*record)) && input_.parse(*record, sample)) {
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
void Weaver::learn_memory_call(const perfdata::Sample& sample) {
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

bool Weaver::keeps_no_memory(const perfdata::Record& record) const {
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

}  // namespace pyinject::weave
