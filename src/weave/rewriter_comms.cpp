// Gives threads the names that are only in their program (CommHistory).
#include "weave/rewriter.hpp"

namespace pyinject::weave {

// A COMM record that perf itself made, for a thread that ran before: replaces its name.
bool Rewriter::write_synthesized_comm(const perfdata::Record& record) {
  if (learned_.context.comms == nullptr || record.type != PERF_RECORD_COMM ||
      learned_.input.time_of(record).value_or(0) != 0) {
    return false;
  }
  const auto command = perfdata::parse_command(record);
  const auto* const name =
      command ? learned_.context.comms->find(command->pid, command->tid, 0) : nullptr;
  if (name == nullptr || !output_.write_command_like(
                             record, {.pid = command->pid, .tid = command->tid, .name = *name})) {
    return false;
  }
  comms_written_.insert(command->tid);
  return true;
}

// RECORD is written. A FORK gives the new thread the name of the one that has started it.
void Rewriter::name_started(const perfdata::Record& record) {
  if (learned_.context.comms == nullptr || record.type != PERF_RECORD_FORK) {
    return;
  }
  const auto task = perfdata::parse_task(record);
  const auto* const name = task && task->time != 0
                               ? learned_.context.comms->find(task->pid, task->tid, task->time)
                               : nullptr;
  if (name != nullptr) {
    (void)output_.write_command_like(record, {.pid = task->pid, .tid = task->tid, .name = *name});
  }
}

// A thread that was started after perf had listed those of its process and before its events were
// open has neither record.
void Rewriter::name_sampled() {
  const auto& sample = work_.sample;
  if (learned_.context.comms == nullptr ||
      learned_.context.comms->begin_of(sample.tid, sample.time) != 0 ||
      comms_written_.contains(sample.tid)) {
    return;
  }
  if (const auto* const name = learned_.context.comms->find(sample.pid, sample.tid, 0)) {
    output_.write_command({.pid = sample.pid, .tid = sample.tid, .name = *name});
    comms_written_.insert(sample.tid);
  }
}

}  // namespace pyinject::weave
