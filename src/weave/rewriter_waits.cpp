// Adds samples that no event has taken: threads that left their processors before the recording
// started.
#include "base/text.hpp"
#include "weave/rewriter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace pyinject::weave {

namespace {

bool shows_kernel(const perf_event_attr& attr) {
  return attr.exclude_kernel == 0 && attr.exclude_callchain_kernel == 0;
}

}  // namespace

// These samples have the time at which the recording started. Records that perf itself synthesizes
// precede them; all records that perf has already sorted by time are older.
bool Rewriter::is_before_waits(const perfdata::Record& record) const {
  return record.type != perfdata::kFinishedRound && learned_.input.time_of(record).value_or(0) == 0;
}

void Rewriter::write_waits() {
  waits_written_ = true;
  const auto& events = learned_.input.events();
  const auto event =
      std::ranges::find_if(events, [](const auto& each) { return each.samples_each_switch(); });
  const auto& context = learned_.context;
  if (!learned_.periods.has_off_cpu() || context.waits == nullptr || event == events.end()) {
    return;
  }
  const auto before = summary_;
  perfdata::StackCounts kinds;
  std::uint64_t written = 0;
  std::uint64_t unknown = 0;
  for (auto& thread : context.waits->threads) {
    if (thread.over || (context.wanted && !context.wanted(thread.pid))) {
      continue;
    }
    const auto wait = learned_.periods.first_wait(thread);
    thread.over = !wait || wait->until || !learned_.options.followed;
    if (!thread.over || !wait) {
      continue;
    }
    unknown += wait->until ? 0U : 1U;
    if (wait->until.value_or(0) > wait->begin) {
      work_.sample.time = wait->begin;
      write_wait(*event, thread, *wait->until - wait->begin);
      ++written;
      if (work_.kind) {
        kinds.add(*work_.kind);
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

void Rewriter::write_wait(const perfdata::Event& event, const WaitingThread& thread,
                          std::uint64_t period) {
  const bool kernel = shows_kernel(event.attr) && !thread.kernel.empty();
  const bool only_name = shows_kernel(event.attr) && !kernel && !thread.kernel_name.empty() &&
                         learned_.processes.spaces().settled_since(thread.pid);
  const auto inner =
      kernel      ? thread.kernel.front()
      : only_name ? names_.address_of_mark(fmt::format("[{}]", base::printable(thread.kernel_name)))
                  : thread.program_counter;
  const perfdata::MadeSample made{
      event,
      {.misc = static_cast<std::uint16_t>(kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER),
       .ip = inner,
       .time = work_.sample.time,
       .pid = thread.pid,
       .tid = thread.tid}};
  work_.sample = made.get();
  work_.clear_stack();
  if (kernel) {
    work_.result.push_back(PERF_CONTEXT_KERNEL);
    work_.result.insert(work_.result.end(), thread.kernel.begin(), thread.kernel.end());
  }
  work_.result.push_back(PERF_CONTEXT_USER);
  const auto begin = work_.result.size();
  if (only_name) {
    work_.result.push_back(inner);
  }
  if (thread.program_counter != 0) {
    user_.unwind_wait(work_, thread);
  }
  builder_.add_python_of(work_, thread);
  (void)write_result(begin, period);
}

}  // namespace pyinject::weave
