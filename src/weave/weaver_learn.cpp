// The first pass: mappings and forks.
#include "base/byte_cursor.hpp"
#include "base/text.hpp"
#include "weave/weaver.hpp"

#include <algorithm>
#include <functional>
#include <span>

#include <sys/mman.h>

namespace pyinject::weave {

namespace {

using perfdata::Record;

constexpr std::chrono::milliseconds kBetweenReports{100};

// The counts are not trusted: saturates.
void add_up(std::uint64_t& sum, std::uint64_t count) {
  if (__builtin_add_overflow(sum, count, &sum)) {
    sum = ~std::uint64_t{0};
  }
}

// Without switch records, all threads would seem to be off-CPU until the end.
bool has_switches(const perfdata::Input& input) {
  return std::ranges::any_of(input.events(),
                             [](const auto& event) { return event.attr.context_switch != 0; });
}

}  // namespace

bool Weaver::is_thread(std::uint32_t tid) { return tid != 0 && tid != ~std::uint32_t{0}; }

Weaver::Weaver(const WeaveOptions& options, const RecordingContext& context,
               unwind::FileFinder& files, perfdata::Input& input)
    : options_{options},
      context_{context},
      input_{input},
      files_{files},
      maps_{spaces_,
            [this](unwind::ProcessNumber pid) {
              return context_.open_map ? context_.open_map(pid) : base::UniqueFd{};
            },
            budget_},
      objects_{files, budget_},
      unwinder_{spaces_, objects_, maps_, budget_},
      greenlets_{files},
      switch_periods_{options.flags.off_cpu && has_switches(input)} {
  summary_.bytes_before = input_.size();
  if (options_.flags.off_cpu) {
    choose_switches();
  }
  choose_calls();
  choose_memory_calls();
  if (context_.comms != nullptr) {
    context_.comms->forget_starts();  // of another file
  }
  if (options_.flags.python_only) {
    earlier_.emplace(spaces_, files, input_);
  }
}

void Weaver::choose_switches() {
  std::vector<const perfdata::Event*> events;
  for (const auto& event : input_.events()) {
    if (event.samples_each_switch()) {
      events.push_back(&event);
    }
  }
  each_switch_ = events.size() == 1 ? events.front() : nullptr;
  if (!switch_periods_) {
    summary_.no_off_cpu = NoOffCpu::kNoSwitches;
  } else if (std::ranges::all_of(
                 events, [](const auto* event) { return event->attr.exclude_kernel != 0; })) {
    summary_.no_off_cpu = NoOffCpu::kOnlyInUserSpace;
  }
}

// An event without a period for each hit has no pairs. A user's own event of the same tracepoint
// precedes this tool's, and stays as it is.
const perfdata::Event* Weaver::event_of_each_hit(std::uint64_t tracepoint) const {
  const perfdata::Event* found = nullptr;
  for (const auto& event : input_.events()) {
    found = event.samples_each_hit_of(tracepoint) ? &event : found;
  }
  return found;
}

void Weaver::choose_calls() {
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

bool Weaver::go_on(double part) {
  const auto now = std::chrono::steady_clock::now();
  if (!options_.progress || now < told_ + kBetweenReports) {
    return true;
  }
  told_ = now;
  return options_.progress(part, summary_.samples);
}

bool Weaver::learn() {
  // Most of a file is samples, which this pass skips quickly.
  constexpr double kShare = 0.2;
  while (const auto record = input_.next_head()) {
    learn_from(*record);
    if (!go_on(kShare * static_cast<double>(input_.position()) /
               static_cast<double>(std::max<std::uint64_t>(input_.size(), 1)))) {
      return false;
    }
  }
  spaces_.complete();
  summarize_losses();
  adopt_orphans();
  choose_base();
  learn_deleted();
  expect_lines();
  for (const auto& file : spaces_.files()) {
    if (GreenletModules::is_module(file)) {
      greenlet_families_.insert(spaces_.family(file.mapped_by));
    }
  }
  off_cpu_.ends(options_.ended_at);
  off_cpu_.complete();
  calls_.ends(options_.ended_at);
  calls_.complete();
  learn_memory();
  for (const auto& file : spaces_.files()) {
    if (file.executable && file.path.starts_with("//anon") &&
        has_names(file.mapped_by, file.begin, file.end)) {
      named_[file.mapped_by].push_back({.begin = file.begin, .end = file.end});
    }
  }
  return true;
}

void Weaver::learn_from(const Record& record) {
  if (switch_periods_) {
    learn_switches(record);
  }
  if (!call_events_.empty()) {
    learn_calls(record);
  }
  if (record.type == PERF_RECORD_SAMPLE) {
    learn_from_sample(record);
    return;
  }
  if (auto mapping = perfdata::parse_mapping(record)) {
    if (mapping->pid == ~std::uint32_t{0} ||
        (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
      return;
    }
    std::uint64_t end = 0;
    if (__builtin_add_overflow(mapping->start, mapping->size, &end)) {
      return;
    }
    processes_.insert(mapping->pid);
    if (mapping->size == SyntheticNames::kSize && mapping->page_offset == mapping->start) {
      previous_name_ranges_.insert(mapping->start);
    }
    spaces_.map(input_.time_of(record).value_or(0), mapping->pid,
                {.begin = mapping->start,
                 .end = end,
                 .offset = mapping->page_offset,
                 .executable = (mapping->protection & PROT_EXEC) != 0,
                 .path = std::move(mapping->file),
                 .device_major = mapping->major,
                 .device_minor = mapping->minor,
                 .inode = mapping->inode,
                 .build_id = base::hexadecimal(mapping->build_id)});
  } else if (record.type == PERF_RECORD_FORK) {
    const auto task = perfdata::parse_task(record);
    if (task && task->time != 0 && context_.comms != nullptr) {
      context_.comms->starts(task->tid, task->time);
    }
    if (task && task->time == 0) {
      introduced_.insert(task->pid);  // synthesized by perf for existing processes (-a)
    } else if (task && task->pid != task->parent_pid) {
      spaces_.fork(task->time, task->parent_pid, task->pid);
      introduced_.insert(task->pid);
      forked_.insert_or_assign(
          task->pid,
          ForkedThread{.pid = task->parent_pid, .tid = task->parent_tid, .time = task->time});
    }
  } else if (record.type == PERF_RECORD_LOST || record.type == PERF_RECORD_LOST_SAMPLES) {
    learn_loss(record);
  } else if (const auto command = perfdata::parse_command(record); command) {
    introduced_.insert(command->pid);
    if (command->pid == command->tid) {
      commands_[command->pid] = command->name;
    }
    if (!command->exec) {
      return;
    }
    spaces_.exec(input_.time_of(record).value_or(0), command->pid);
    forked_.erase(command->pid);
  }
}

void Weaver::learn_loss(const Record& record) {
  base::ByteCursor cursor{record.bytes};
  cursor.take(sizeof(perf_event_header));
  if (record.type == PERF_RECORD_LOST) {
    cursor.number<std::uint64_t>();  // the reporting event, not the one with the losses
    const auto count = cursor.number<std::uint64_t>();
    if (!cursor.failed()) {
      ++summary_.losses;
      add_up(lost_records_, count);
    }
    return;
  }
  constexpr std::uint16_t kDroppedByFilter = 1U << 15U;  // PERF_RECORD_MISC_LOST_SAMPLES_BPF
  const auto* const event = input_.event_of(record);
  const auto count = cursor.number<std::uint64_t>();
  if (!cursor.failed() && (record.misc & kDroppedByFilter) == 0 &&
      (event == nullptr || !event->is_dummy())) {
    add_up(lost_samples_, count);
  }
}

// The same losses are reported twice, and each way misses some: LOST those at the end, LOST_SAMPLES
// (perf 6.1, Linux 6.0) those of children that inherited an event. Switch records fill the buffers,
// too, and are not samples.
void Weaver::summarize_losses() {
  bool switches = false;
  for (const auto& event : input_.events()) {
    switches = switches || event.attr.context_switch != 0;
    // A period has no effect on tracepoints.
    const bool each = event.samples_each_hit_of(event.attr.config);
    if (!event.is_dummy() && !event.samples_each_switch() && !each) {
      (event.attr.freq != 0 ? summary_.by_frequency : summary_.by_period) = true;
    }
  }
  summary_.lost =
      switches && lost_samples_ != 0 ? lost_samples_ : std::max(lost_records_, lost_samples_);
}

void Weaver::learn_switches(const Record& record) {
  const auto time = input_.time_of(record);
  if (!time) {
    return;
  }
  off_cpu_.ends(*time);
  if (*time != 0 && *time >= options_.begun_at) {
    first_time_ = first_time_ == 0 ? *time : std::min(first_time_, *time);
  }
  if (record.type == PERF_RECORD_SAMPLE) {
    const auto head = each_switch_ != nullptr && input_.event_of(record) == each_switch_
                          ? input_.head_of(record)
                          : std::nullopt;
    if (head && is_thread(head->tid)) {
      off_cpu_.is_sampled(head->tid, *time);
    }
  } else if (const auto task = perfdata::parse_task(record); task) {
    if (record.type == PERF_RECORD_EXIT) {
      off_cpu_.exits(task->tid, task->time);
    } else {
      off_cpu_.begins(task->tid, task->time);
    }
  } else if (const auto command = perfdata::parse_command(record); command && command->exec) {
    off_cpu_.begins(command->tid, *time);
  } else if (record.type == PERF_RECORD_SWITCH || record.type == PERF_RECORD_SWITCH_CPU_WIDE) {
    const auto tid = input_.thread_of(record);
    if (!tid || !is_thread(*tid)) {
      return;
    }
    if ((record.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0) {
      off_cpu_.takes_processor(*tid, *time);
    } else {
      off_cpu_.leaves_processor(*tid, *time,
                                (record.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0);
    }
  }
}

void Weaver::learn_calls(const Record& record) {
  const auto time = input_.time_of(record);
  if (!time) {
    return;
  }
  calls_.ends(*time);
  if (record.type != PERF_RECORD_SAMPLE) {
    if (const auto task = perfdata::parse_task(record); task && record.type == PERF_RECORD_EXIT) {
      calls_.exits(task->tid, task->time);
    } else if (record.type == PERF_RECORD_LOST || record.type == PERF_RECORD_UNTHROTTLE) {
      // The thread whose sample is the first one again: as a rule the one with the losses.
      const auto tid = input_.thread_of(record);
      tid ? calls_.loses(*tid, *time) : void();
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
    is_end ? calls_.leaves(head->tid, *time, call) : calls_.enters(head->tid, *time, call);
  } else if (event->attr.type !=
                 PERF_TYPE_TRACEPOINT &&  // a tracepoint may have the user's address
             (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
    calls_.runs(head->tid, *time);
  }
}

// The places of names in the synthetic range depend on their numbers of lines.
void Weaver::expect_lines() {
  const auto expect = [this](const sample::Code& name, std::uint32_t last_line) {
    synthetic_->expect(named_code(name), last_line);
  };
  if (context_.stacks != nullptr && !options_.flags.lines) {
    context_.stacks->each_name(expect);
  }
  if (context_.waits != nullptr && !options_.flags.lines) {
    context_.waits->stacks.each_name(expect);
  }
}

void Weaver::learn_from_sample(const Record& record) {
  constexpr std::size_t kEnough = 8;
  const auto sample = input_.head_of(record);
  needs_data_ = needs_data_ || !sample || sample->has_address;
  if (!sample || introduced_.contains(sample->pid)) {
    return;
  }
  auto& seen = orphans_[sample->pid];
  if (seen.size() < kEnough &&
      (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
    seen.push_back(sample->ip);
  }
}

// For a process that was forked after perf had opened its events and before these reported forks,
// or the fork record of which was lost: it is the child of the process that has code at the
// addresses where it was seen. Unrelated processes have code at different addresses.
void Weaver::adopt_orphans() {
  constexpr std::size_t kMostTries = 1'000'000;  // a forged file can have any number of both
  std::size_t tries = 0;
  for (const auto& [pid, seen] : orphans_) {
    tries += processes_.size();
    if (introduced_.contains(pid) || seen.empty() || tries > kMostTries) {
      continue;
    }
    std::uint32_t parent = 0;
    std::ptrdiff_t most = 0;
    for (const auto candidate : processes_) {
      const auto known = std::ranges::count_if(seen, [&](std::uint64_t address) {
        const auto* const file = spaces_.find(candidate, ~std::uint64_t{0}, address);
        return file != nullptr && file->executable;
      });
      if (known > most && candidate != pid && introduced_.contains(candidate)) {
        most = known;
        parent = candidate;
      }
    }
    if (most > 0) {
      spaces_.fork(0, parent, pid);
      adopted_.emplace(pid, parent);
    }
  }
  orphans_.clear();
  spaces_.complete();
}

// The highest range that no process uses; user addresses on x86-64 end at 2^47. A file that leaves
// no such range is forged and gets an arbitrary one.
void Weaver::choose_base() {
  constexpr auto kSize = SyntheticNames::kSize;
  constexpr std::uint64_t kHighest = std::uint64_t{0x4000} << 32U;
  std::vector<AddressRange> used;
  std::ranges::transform(spaces_.files(), std::back_inserter(used), [](const auto& file) {
    return AddressRange{.begin = file.begin, .end = file.end};
  });
  std::ranges::sort(used, std::greater{}, &AddressRange::end);
  std::uint64_t base = kHighest;
  for (const auto& range : used) {
    if (range.end <= base) {
      break;
    }
    if (range.begin < base + kSize) {
      const auto below = range.begin / kSize * kSize;
      if (below <= kSize) {
        base = kHighest;
        break;
      }
      base = below - kSize;
    }
  }
  synthetic_.emplace(base);
}

bool Weaver::has_names(std::uint32_t pid, std::uint64_t begin, std::uint64_t end) const {
  const auto& symbols = maps_.of(pid);
  const auto at = std::ranges::lower_bound(symbols, begin, {}, &MapSymbol::start);
  return at != symbols.end() && at->start < end;
}

}  // namespace pyinject::weave
