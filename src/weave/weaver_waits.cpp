// Samples of what no event has sampled: threads that left their processors before the recording
// began.
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

// They have the time at which the recording began. What perf itself says of processes comes before
// them, and all that it has sorted by time already is older.
bool Weaver::is_before_waits(const perfdata::Record& record) const {
  return record.type != perfdata::kFinishedRound && input_.time_of(record).value_or(0) == 0;
}

void Weaver::write_waits(perfdata::Output& output) {
  waits_written_ = true;
  const auto event = std::ranges::find_if(
      input_.events(), [](const auto& each) { return each.samples_each_switch(); });
  if (!switch_periods_ || knowledge_.waits == nullptr || event == input_.events().end()) {
    return;
  }
  const auto begin = options_.begun_at != 0 ? options_.begun_at : first_time_;
  const auto before = summary_;
  std::uint64_t written = 0;
  std::uint64_t unknown = 0;
  for (auto& thread : knowledge_.waits->threads) {
    if (thread.over || (knowledge_.wanted && !knowledge_.wanted(thread.pid))) {
      continue;
    }
    auto wait = off_cpu_.first_wait(thread.tid, begin, thread.seen);
    if (wait && each_switch_ == nullptr && wait->begin != begin) {
      wait.reset();  // several events sample switches: one of them has this one
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
      sample_.time = wait->begin;
      write_wait(output, *event, thread, *wait->until - wait->begin);
      ++written;
    }
  }
  // Their stacks are not what the other figures are of.
  summary_ = before;
  summary_.samples += written;
  summary_.off_cpu += written;
  summary_.waits += written;
  summary_.waits_unknown += unknown;
}

void Weaver::write_wait(perfdata::Output& output, const perfdata::Event& event,
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
       .time = sample_.time,
       .pid = thread.pid,
       .tid = thread.tid}};
  sample_ = made.get();
  result_.clear();
  chain_.clear();
  registers_.clear();
  incomplete_counter_ = nullptr;
  if (kernel) {
    result_.push_back(PERF_CONTEXT_KERNEL);
    result_.insert(result_.end(), thread.kernel.begin(), thread.kernel.end());
  }
  result_.push_back(PERF_CONTEXT_USER);
  const auto begin = result_.size();
  if (only_name) {
    result_.push_back(inner);
  }
  if (thread.program_counter != 0) {
    unwind_wait(thread);
  }
  add_python_of(thread);
  mark_names(begin);
  summary_.longest = std::max(summary_.longest, result_.size());
  (void)output.write_sample(sample_, result_, period);
}

// Only two registers are known. Where a function keeps its frame by %rbp, what that was is tried:
// the places of the stack that could be such a frame. The one that leads to the thread's first
// function is taken.
void Weaver::unwind_wait(const WaitingThread& thread) {
  constexpr std::size_t kMostTries = 32;
  stack_ = {.begin = thread.stack_pointer, .bytes = thread.stack, .cut = thread.stack_cut};
  unwind::Registers registers;
  registers.set(elf::kStackPointer, thread.stack_pointer);
  registers.set(elf::kReturnAddress, thread.program_counter);
  const auto unwind = [&] {
    chain_.clear();
    registers_.clear();
    return unwinder_.unwind(thread.pid, sample_.time, registers, stack_, chain_, &registers_);
  };
  auto unwound = unwind();
  const auto end = stack_.begin + stack_.bytes.size();
  const bool by_registers = unwound.end == unwind::EndOfStack::kBroken ||
                            unwound.end == unwind::EndOfStack::kNoInformation;
  std::size_t tries = 0;
  for (auto at = stack_.begin; by_registers && at < end && tries < kMostTries; at += sizeof at) {
    const auto saved = stack_.word_at(at).value_or(0);
    const auto caller = stack_.word_at(at + sizeof at).value_or(0);
    const auto* const file =
        saved > at && saved < end ? spaces_.find(thread.pid, sample_.time, caller - 1) : nullptr;
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
    incomplete_counter_ = &summary_.broken;
    if (spaces_.settled_since(thread.pid)) {
      chain_.push_back(synthetic_->address("[truncated: registers]"));
    }
    return;
  }
  mark_end(chain_, unwound);
}

void Weaver::add_python_of(const WaitingThread& thread) {
  interpreter_ = interpreter_of(thread.pid, sample_.time);
  const auto stack =
      knowledge_.waits->stacks.at({.pid = thread.pid, .tid = thread.tid, .time = thread.seen});
  if (chain_.empty()) {
    std::ranges::transform(stack.frames, std::back_inserter(result_),
                           [&](const PythonFrame& frame) { return address_of(frame, thread.pid); });
    mark_root(stack);
    return;
  }
  kinds_.clear();
  std::ranges::transform(chain_, std::back_inserter(kinds_),
                         [this](std::uint64_t address) { return kind_of(address); });
  add_whole(chain_, evaluators_of(kinds_), stack, false);
}

}  // namespace pyinject::weave
