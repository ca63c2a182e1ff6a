// Gives threads the names that are only in their program (CommHistory).
#include "weave/weaver.hpp"

namespace pyinject::weave {

// A COMM record that perf itself made, for a thread that ran before: replaces its name.
bool Weaver::write_synthesized_comm(perfdata::Output& output, const perfdata::Record& record) {
  if (context_.comms == nullptr || record.type != PERF_RECORD_COMM ||
      input_.time_of(record).value_or(0) != 0) {
    return false;
  }
  const auto command = perfdata::parse_command(record);
  const auto* const name = command ? context_.comms->find(command->pid, command->tid, 0) : nullptr;
  if (name == nullptr || !output.write_command_like(
                             record, {.pid = command->pid, .tid = command->tid, .name = *name})) {
    return false;
  }
  comms_written_.insert(command->tid);
  return true;
}

// RECORD is written. A FORK gives the new thread the name of the one that has started it.
void Weaver::name_started(perfdata::Output& output, const perfdata::Record& record) const {
  if (context_.comms == nullptr || record.type != PERF_RECORD_FORK) {
    return;
  }
  const auto task = perfdata::parse_task(record);
  const auto* const name =
      task && task->time != 0 ? context_.comms->find(task->pid, task->tid, task->time) : nullptr;
  if (name != nullptr) {
    (void)output.write_command_like(record, {.pid = task->pid, .tid = task->tid, .name = *name});
  }
}

// A thread that was started after perf had listed those of its process and before its events were
// open has neither record.
void Weaver::name_sampled(perfdata::Output& output, const perfdata::Sample& sample) {
  if (context_.comms == nullptr || context_.comms->begin_of(sample.tid, sample.time) != 0 ||
      comms_written_.contains(sample.tid)) {
    return;
  }
  if (const auto* const name = context_.comms->find(sample.pid, sample.tid, 0)) {
    output.write_command({.pid = sample.pid, .tid = sample.tid, .name = *name});
    comms_written_.insert(sample.tid);
  }
}

}  // namespace pyinject::weave
