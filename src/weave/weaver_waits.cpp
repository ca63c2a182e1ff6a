// Adds samples that no event has taken: threads that left their processors before the recording
// started.
#include "base/text.hpp"
#include "weave/weaver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace pyinject::weave {

namespace {

bool shows_kernel(const perf_event_attr& attr) {
  return attr.exclude_kernel == 0 && attr.exclude_callchain_kernel == 0;
}

}  // namespace

// These samples have the time at which the recording started. Records that perf itself synthesizes
// precede them; all records that perf has already sorted by time are older.
bool Weaver::is_before_waits(const perfdata::Record& record) const {
  return record.type != perfdata::kFinishedRound && input_.time_of(record).value_or(0) == 0;
}

void Weaver::write_waits(perfdata::Output& output, SampleWork& work) {
  waits_written_ = true;
  const auto event = std::ranges::find_if(
      input_.events(), [](const auto& each) { return each.samples_each_switch(); });
  if (!switch_periods_ || context_.waits == nullptr || event == input_.events().end()) {
    return;
  }
  const auto begin = options_.begun_at != 0 ? options_.begun_at : first_time_;
  const auto before = summary_;
  perfdata::StackCounts kinds;
  std::uint64_t written = 0;
  std::uint64_t unknown = 0;
  for (auto& thread : context_.waits->threads) {
    if (thread.over || (context_.wanted && !context_.wanted(thread.pid))) {
      continue;
    }
    auto wait = off_cpu_.first_wait(thread.tid, begin, thread.seen);
    if (wait && each_switch_ == nullptr && wait->begin != begin) {
      wait.reset();  // several events sample switches: one of them has this wait
    }
    thread.over = !wait || wait->until || !options_.followed;
    if (!thread.over || !wait) {
      continue;
    }
    if (!wait->until && thread.throughout && begin != 0) {
      wait->until = off_cpu_.end();
    }
    unknown += wait->until ? 0U : 1U;
    if (wait->until.value_or(0) > wait->begin) {
      work.sample.time = wait->begin;
      write_wait(output, work, *event, thread, *wait->until - wait->begin);
      ++written;
      if (work.kind) {
        kinds.add(*work.kind);
      }
    }
  }
  // The other statistics do not cover these stacks.
  summary_ = before;
  summary_.stacks.add(kinds);
  summary_.samples += written;
  summary_.off_cpu += written;
  summary_.waits += written;
  summary_.waits_unknown += unknown;
}

void Weaver::write_wait(perfdata::Output& output, SampleWork& work, const perfdata::Event& event,
                        const WaitingThread& thread, std::uint64_t period) {
  const bool kernel = shows_kernel(event.attr) && !thread.kernel.empty();
  const bool only_name = shows_kernel(event.attr) && !kernel && !thread.kernel_name.empty() &&
                         spaces_.settled_since(thread.pid);
  const auto inner =
      kernel      ? thread.kernel.front()
      : only_name ? synthetic_->address(fmt::format("[{}]", base::printable(thread.kernel_name)))
                  : thread.program_counter;
  const perfdata::MadeSample made{
      event,
      {.misc = static_cast<std::uint16_t>(kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER),
       .ip = inner,
       .time = work.sample.time,
       .pid = thread.pid,
       .tid = thread.tid}};
  work.sample = made.get();
  work.clear_stack();
  if (kernel) {
    work.result.push_back(PERF_CONTEXT_KERNEL);
    work.result.insert(work.result.end(), thread.kernel.begin(), thread.kernel.end());
  }
  work.result.push_back(PERF_CONTEXT_USER);
  const auto begin = work.result.size();
  if (only_name) {
    work.result.push_back(inner);
  }
  if (thread.program_counter != 0) {
    unwind_wait(work, thread);
  }
  add_python_of(work, thread);
  mark_names(work, begin);
  summary_.longest = std::max(summary_.longest, work.result.size());
  (void)output.write_sample(work.sample, work.result, period);
}

// Only two registers are known. If a function keeps its frame in %rbp, tries stack slots that could
// be such a frame, and takes the one that leads to the thread's first function.
void Weaver::unwind_wait(SampleWork& work, const WaitingThread& thread) {
  constexpr std::size_t kMostTries = 32;
  work.stack = {.begin = thread.stack_pointer, .bytes = thread.stack, .cut = thread.stack_cut};
  unwind::Registers registers;
  registers.set(elf::kStackPointer, thread.stack_pointer);
  registers.set(elf::kReturnAddress, thread.program_counter);
  const auto unwind = [&] {
    work.chain.clear();
    work.registers.clear();
    return unwinder_.unwind(thread.pid, work.sample.time, registers, work.stack, work.chain,
                            &work.registers);
  };
  auto unwound = unwind();
  const auto end = work.stack.begin + work.stack.bytes.size();
  const bool by_registers = unwound.end == unwind::EndOfStack::kBroken ||
                            unwound.end == unwind::EndOfStack::kNoInformation;
  std::size_t tries = 0;
  for (auto at = work.stack.begin; by_registers && at < end && tries < kMostTries;
       at += sizeof at) {
    const auto saved = work.stack.word_at(at).value_or(0);
    const auto caller = work.stack.word_at(at + sizeof at).value_or(0);
    const auto* const file = saved > at && saved < end
                                 ? spaces_.find(thread.pid, work.sample.time, caller - 1)
                                 : nullptr;
    if (file == nullptr || !file->executable) {
      continue;
    }
    ++tries;
    registers.set(elf::kFramePointer, at);
    const auto another = unwind();
    if (another.end == unwind::EndOfStack::kWhole) {
      return;
    }
  }
  if (tries > 0) {
    registers.forget(elf::kFramePointer);
    unwound = unwind();
  }
  if (by_registers) {
    work.incomplete_counter = &summary_.broken;
    if (spaces_.settled_since(thread.pid)) {
      work.chain.push_back(synthetic_->address("[truncated: registers]"));
    }
    return;
  }
  mark_end(work, unwound);
}

void Weaver::add_python_of(SampleWork& work, const WaitingThread& thread) {
  work.interpreter = interpreter_of(thread.pid, work.sample.time);
  const auto stack =
      context_.waits->stacks.at({.pid = thread.pid, .tid = thread.tid, .time = thread.seen});
  work.kind = kind_without_python(work, false);
  if (work.interpreter != nullptr && work.kind) {
    work.kind = stack.whole ? kind_of_whole(work, stack) : StackKind::kUnread;
  }
  if (work.chain.empty()) {
    std::ranges::transform(
        stack.frames, std::back_inserter(work.result),
        [&](const sample::Frame& frame) { return address_of(frame, thread.pid, thread.seen); });
    mark_root(work, stack);
    return;
  }
  work.kinds.clear();
  std::ranges::transform(work.chain, std::back_inserter(work.kinds),
                         [&](std::uint64_t address) { return kind_of(work, address); });
  end_at_greenlet(work, false);
  add_whole(work, evaluators_of(work.kinds), stack, false);
}

}  // namespace pyinject::weave
