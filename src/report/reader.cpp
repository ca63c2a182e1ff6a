#include "pyinject/report/reader.hpp"

#include "base/byte_cursor.hpp"
#include "base/text.hpp"
#include "perfdata/record.hpp"
#include "report/clock.hpp"
#include "report/code_places.hpp"
#include "report/collections.hpp"
#include "report/names.hpp"
#include "report/pair_numbers.hpp"
#include "report/raw_stacks.hpp"
#include "report/thread_names.hpp"
#include "unwind/address_spaces.hpp"
#include "weave/recorded_processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::report {

namespace {

using perfdata::Input;
using perfdata::Record;

// Callchains hold marks above this (linux, include/uapi/linux/perf_event.h, PERF_CONTEXT_MAX).
constexpr auto kFirstMark = static_cast<std::uint64_t>(PERF_CONTEXT_MAX);

std::string_view without_modifiers(std::string_view name) {
  constexpr std::string_view kModifiers = "ukhGHpPSDIWeb";
  const auto colon = name.rfind(':');
  const auto modifiers = colon == std::string_view::npos ? "" : name.substr(colon + 1);
  return !modifiers.empty() && modifiers.find_first_not_of(kModifiers) == std::string_view::npos
             ? name.substr(0, colon)
             : name;
}

// The name without modifiers; the two kinds of cores of a hybrid processor count one event.
std::string event_key(std::string_view name) {
  for (const std::string_view unit : {"cpu_core/", "cpu_atom/", "cpu_lowpower/"}) {
    if (name.starts_with(unit)) {
      name.remove_prefix(unit.size());
      return std::string{name.substr(0, name.find('/'))};
    }
  }
  name = without_modifiers(name);
  if (const auto slash = name.find('/'); name.starts_with("context-switches/")) {
    name = name.substr(0, slash);
  }
  return std::string{name};
}

bool has_user_part(const perfdata::Sample& sample) {
  return std::ranges::find(sample.chain, static_cast<std::uint64_t>(PERF_CONTEXT_USER)) !=
         sample.chain.end();
}

class Reader {
 public:
  Reader(Input& input, const std::string& file, const ReadOptions& options)
      : input_{input}, file_{file}, options_{options} {}

  [[nodiscard]] Profile read();

 private:
  void learn();
  void learn_from(const Record& record);
  void learn_mapping(const Record& record, perfdata::Mapping mapping);
  void learn_loss(const Record& record);
  void take_events();
  void take(perfdata::Sample& sample);
  void take_group(perfdata::Sample& sample);
  [[nodiscard]] RawStack stack_of(const perfdata::Sample& sample);
  [[nodiscard]] std::uint32_t thread_of(const perfdata::Sample& sample);
  void name_stacks();
  void judge_waits();
  void judge_memory();
  // The events whose names IS_ONE admits become one, AS, if their samples have bytes.
  void add_up(const char* as, const std::function<bool(const std::string&)>& is_one);
  void note_losses();
  void note_unprocessed();
  [[nodiscard]] std::ptrdiff_t samples_in(const std::vector<bool>& lost) const;
  void note_lost_names();
  bool go_on(double part);

  Input& input_;
  const std::string& file_;
  const ReadOptions& options_;
  unwind::AddressSpaces spaces_;
  ThreadNames names_;
  std::string kernel_symbol_;
  std::uint64_t kernel_address_ = 0;
  std::optional<CodePlaces> places_;
  std::optional<RawStacks> stacks_;
  std::unordered_map<const perfdata::Event*, std::uint32_t> events_;
  std::unordered_map<std::uint64_t, const perfdata::Event*> members_;          // of groups, by id
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> counters_;  // by id and thread
  std::set<std::uint32_t> grouped_;  // events that are members of groups
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::uint32_t> threads_;
  std::uint64_t lost_records_ = 0;
  std::uint64_t lost_samples_ = 0;
  std::uint64_t without_room_ = 0;
  std::uint64_t unreadable_ = 0;
  std::uint64_t copied_ = 0;              // samples with a copied stack
  std::uint64_t kernel_only_ = 0;         // samples with no more than the kernel's part of a stack
  std::vector<std::uint32_t> innermost_;  // places, by sample, whose stack is that of the caller
  std::vector<std::uint64_t> user_;       // of the current sample
  std::vector<std::uint64_t> kernel_;
  Profile profile_;
};

bool Reader::go_on(double part) { return !options_.progress || options_.progress(part); }

void Reader::learn_mapping(const Record& record, perfdata::Mapping mapping) {
  if ((record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
    constexpr std::string_view kKernelFile = "[kernel.kallsyms]";
    if (mapping.file.starts_with(kKernelFile) && kernel_symbol_.empty()) {
      kernel_symbol_ = mapping.file.substr(kKernelFile.size());
      kernel_address_ = mapping.page_offset;
    }
    return;
  }
  if (auto file = weave::mapped_file(mapping)) {
    spaces_.map(input_.time_of(record).value_or(0), mapping.pid, *std::move(file));
  }
}

void Reader::learn_loss(const Record& record) {
  base::ByteCursor cursor{record.bytes};
  cursor.take(sizeof(perf_event_header));
  if (record.type == PERF_RECORD_LOST) {
    cursor.number<std::uint64_t>();  // the event
  }
  constexpr std::uint16_t kDroppedByFilter = 1U << 15U;  // PERF_RECORD_MISC_LOST_SAMPLES_BPF
  if (record.type == PERF_RECORD_LOST_SAMPLES && (record.misc & kDroppedByFilter) != 0) {
    return;
  }
  const auto count = cursor.number<std::uint64_t>();
  auto& sum = record.type == PERF_RECORD_LOST ? lost_records_ : lost_samples_;
  if (!cursor.failed()) {
    sum += std::min(count, std::numeric_limits<std::uint64_t>::max() - sum);
  }
}

void Reader::learn_from(const Record& record) {
  if (record.type == PERF_RECORD_SAMPLE) {
    return;
  }
  if (auto mapping = perfdata::parse_mapping(record)) {
    learn_mapping(record, *std::move(mapping));
  } else if (record.type == PERF_RECORD_FORK) {
    if (const auto task = perfdata::parse_task(record)) {
      // By the time that orders the records: the one in its body is a little later.
      names_.start(input_.time_of(record).value_or(task->time), task->parent_tid, task->tid);
      if (task->pid != task->parent_pid && task->time != 0) {
        spaces_.fork(task->time, task->parent_pid, task->pid);
        profile_.forks.push_back({.pid = task->pid,
                                  .time = input_.time_of(record).value_or(task->time),
                                  .parent = task->parent_pid});
      }
    }
  } else if (record.type == PERF_RECORD_LOST || record.type == PERF_RECORD_LOST_SAMPLES) {
    learn_loss(record);
  } else if (auto command = perfdata::parse_command(record)) {
    const auto time = input_.time_of(record).value_or(0);
    names_.name(time, command->tid, std::move(command->name));
    if (command->exec) {
      spaces_.exec(time, command->pid);
    }
  }
}

// Everything but the samples, which need it.
void Reader::learn() {
  while (const auto record = input_.next_head()) {
    learn_from(*record);
  }
  spaces_.complete();
  names_.complete();
  places_.emplace(spaces_, input_, options_.open_perf_map);
  stacks_.emplace(*places_);
  if (!kernel_symbol_.empty()) {
    places_->set_kernel(kernel_symbol_, kernel_address_);
  }
}

void Reader::take_events() {
  std::map<std::string, std::uint32_t> known;
  for (const auto& event : input_.events()) {
    if (event.is_dummy()) {
      continue;
    }
    auto key = event_key(event.name.empty() ? "unknown" : event.name);
    const auto [entry, fresh] =
        known.try_emplace(key, static_cast<std::uint32_t>(profile_.events.size()));
    if (fresh) {
      const bool time = key == "cpu-clock" || key == "task-clock";
      profile_.events.push_back(
          {.name = std::move(key), .unit = time ? Unit::kNanoseconds : Unit::kSamples});
    }
    events_.emplace(&event, entry->second);
    for (const auto id : event.ids) {
      members_.emplace(id, &event);
    }
  }
}

RawStack Reader::stack_of(const perfdata::Sample& sample) {
  user_.clear();
  kernel_.clear();
  const auto mode = sample.misc & PERF_RECORD_MISC_CPUMODE_MASK;
  if (sample.chain.empty()) {
    (mode == PERF_RECORD_MISC_KERNEL ? kernel_ : user_).push_back(sample.ip);
  }
  bool in_kernel = mode == PERF_RECORD_MISC_KERNEL;
  for (const auto address : sample.chain) {
    if (address < kFirstMark) {
      (in_kernel ? kernel_ : user_).push_back(address);
    } else {
      in_kernel = address == static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL) ||
                  address == static_cast<std::uint64_t>(PERF_CONTEXT_HV);
    }
  }
  std::ranges::reverse(user_);
  std::ranges::reverse(kernel_);
  return stacks_->add(sample.pid, sample.time, user_, kernel_);
}

std::uint32_t Reader::thread_of(const perfdata::Sample& sample) {
  const auto& name = names_.at(sample.time, sample.tid);
  const auto [entry, fresh] = threads_.try_emplace(
      {sample.pid, sample.tid, name}, static_cast<std::uint32_t>(profile_.threads.size()));
  if (fresh) {
    profile_.threads.push_back({.pid = sample.pid,
                                .tid = sample.tid,
                                .name = name.empty() ? fmt::format(":{}", sample.tid) : name,
                                .process = names_.at(sample.time, sample.pid)});
  }
  return entry->second;
}

// A sample of a group counts for each member whose counter has changed, by that much
// (linux, tools/perf/util/session.c, deliver_sample_group()).
void Reader::take_group(perfdata::Sample& sample) {
  bool known = false;
  for (const auto& [id, value] : std::exchange(sample.group, {})) {
    const auto member = members_.find(id);
    if (member == members_.end()) {
      continue;
    }
    known = true;
    sample.event = member->second;
    grouped_.insert(events_.at(sample.event));
    // The counters of inherited events are those of each thread (perf 6.11).
    auto& last = counters_[{id, sample.event->attr.inherit != 0 ? sample.tid : 0}];
    sample.period = value - std::exchange(last, value);
    if (sample.period != 0) {
      take(sample);
    }
  }
  unreadable_ += known ? 0 : 1;
}

void Reader::take(perfdata::Sample& sample) {
  if (!sample.group.empty()) {
    take_group(sample);
    return;
  }
  const auto event = events_.find(sample.event);
  if (event == events_.end()) {
    return;
  }
  const bool copied = sample.event->has_user_stacks();
  copied_ += copied ? 1 : 0;
  kernel_only_ +=
      !copied && sample.event->attr.exclude_callchain_user != 0 && !has_user_part(sample) ? 1 : 0;
  const bool room = !stacks_->full();
  without_room_ += room ? 0 : 1;
  const auto stack = room ? stack_of(sample) : RawStack{};
  innermost_.push_back(stack.innermost);
  profile_.samples.push_back({.time = sample.time,
                              .period = sample.period,
                              .stack = stack.caller,
                              .thread = thread_of(sample),
                              .event = event->second});
}

// Frames at the root that are in no file are what unwinding by frame pointers found behind a
// thread's first function; perf-scripts leave them out, too.
void Reader::name_stacks() {
  const auto frames = places_->name_all(profile_);
  const auto& raw = stacks_->nodes();
  std::vector<std::uint32_t> nodes(raw.size());
  std::vector<sample::Does> does(raw.size());
  PairNumbers numbers;
  const auto child = [&](std::uint32_t caller, std::uint32_t frame) {
    const auto [number, fresh] = numbers.try_emplace(caller, frame, profile_.nodes.size());
    if (fresh) {
      profile_.nodes.push_back({.caller = caller, .frame = frame});
    }
    return number;
  };
  for (std::size_t i = 1; i < raw.size(); ++i) {
    const auto caller = nodes[raw[i].caller];
    const bool dropped = caller == 0 && raw[i].place == CodePlaces::kUnknown;
    nodes[i] = dropped ? 0 : child(caller, frames[raw[i].place]);
    // Only the innermost Python function says so.
    const auto own = places_->does_of(raw[i].place);
    does[i] = own != sample::Does::kUnknown ? own : does[raw[i].caller];
  }
  for (std::size_t i = 0; i < innermost_.size(); ++i) {
    auto& sample = profile_.samples[i];
    if (innermost_[i] == RawStack::kNone) {
      sample.stack = 0;
      continue;
    }
    const auto own = places_->does_of(innermost_[i]);
    sample.does = own != sample::Does::kUnknown ? own : does[sample.stack];
    sample.stack = child(nodes[sample.stack], frames[innermost_[i]]);
  }
  add_collections(profile_, child);
}

// `record --off-cpu` replaces the period of a switch, 1, by the time until the thread ran again. In
// a group, the period is a number of switches.
void Reader::judge_waits() {
  for (std::uint32_t i = 0; i < profile_.events.size(); ++i) {
    auto& event = profile_.events[i];
    if (event.name == "context-switches" && !grouped_.contains(i) &&
        std::ranges::any_of(profile_.samples, [&](const Sample& sample) {
          return sample.event == i && sample.period > 1;
        })) {
      event.unit = Unit::kWaits;
    }
  }
}

// `record --what memory` replaces the period of a call, 1, by the number of bytes. What it was that
// mapped them, the C functions show. The same of blocks of the allocator.
void Reader::judge_memory() {
  constexpr auto kCalls =
      std::to_array<std::string_view>({"syscalls:sys_enter_mmap", "syscalls:sys_enter_mremap",
                                       "syscalls:sys_enter_brk", "syscalls:sys_enter_mprotect"});
  add_up(kMappedMemory,
         [&](const std::string& name) { return std::ranges::find(kCalls, name) != kCalls.end(); });
  // record/malloc_probes.cpp, in the group of a session (perf/uprobe_events.hpp).
  add_up(kAllocatedMemory, [](const std::string& name) {
    return name.starts_with("perf_pyinject_") && name.find(":heap_alloc") != std::string::npos;
  });
}

void Reader::add_up(const char* as, const std::function<bool(const std::string&)>& is_one) {
  std::vector<bool> maps;
  maps.reserve(profile_.events.size());
  for (const auto& event : profile_.events) {
    maps.push_back(is_one(event.name));
  }
  for (const auto& [event, number] : events_) {
    maps[number] = maps[number] && event->samples_each_hit_of(event->attr.config);
  }
  const auto first = std::ranges::find(maps, true) - maps.begin();
  if (std::ranges::none_of(profile_.samples, [&](const Sample& sample) {
        return maps[sample.event] && sample.period > 1;
      })) {
    return;
  }
  profile_.events[static_cast<std::size_t>(first)] = {.name = as, .unit = Unit::kBytes};
  for (auto& sample : profile_.samples) {
    sample.event = maps[sample.event] ? static_cast<std::uint32_t>(first) : sample.event;
  }
}

void Reader::note_losses() {
  auto& notes = profile_.notes;
  const auto lost = std::max(lost_records_, lost_samples_);
  profile_.lost = lost;
  if (lost != 0) {
    notes.push_back(fmt::format("perf has lost {}, which may have been samples",
                                base::counted(lost, "record")));
  }
  if (input_.damaged()) {
    notes.push_back(fmt::format("the file is damaged: {}", input_.damage()));
  }
  if (without_room_ != 0) {
    notes.push_back(
        fmt::format("{} samples have no stack: there are too many distinct ones", without_room_));
  }
  if (unreadable_ != 0) {
    notes.push_back(fmt::format("{} samples cannot be read", unreadable_));
  }
}

// What only post-processing gives.
void Reader::note_unprocessed() {
  const auto name = base::printable(file_);
  if (input_.is_directory()) {
    profile_.notes.push_back(
        fmt::format("{} is a directory (--threads) that was not post-processed: stacks lack the "
                    "Python functions that were entered before the attach",
                    name));
  }
  if (copied_ != 0) {
    profile_.notes.push_back(fmt::format(
        "the copied stacks of {} of {} samples are not unwound, only their innermost functions are "
        "shown: perf-pyinject weave {} -o FILE unwinds them",
        copied_, profile_.samples.size(), name));
  }
  // Post-processing adds the rest, and counts the stacks.
  const bool processed = input_.stack_counts().all() != 0;
  if (kernel_only_ != 0 && !processed) {
    profile_.notes.push_back(fmt::format(
        "{} of {} samples have only the kernel's part of their stacks: perf recorded no more "
        "(--kernel-callchains), and they were not post-processed: record again",
        kernel_only_, profile_.samples.size()));
  }
  // perf describes its events when it ends; weave() keeps that.
  const auto& events = input_.events();
  if (processed && std::ranges::all_of(events, [](const auto& one) { return one.name.empty(); })) {
    profile_.notes.emplace_back(
        "perf record died before it completed the file: samples of its end are missing");
  }
}

// Number of samples whose stack has a function of an object in LOST.
std::ptrdiff_t Reader::samples_in(const std::vector<bool>& lost) const {
  std::vector<bool> below(profile_.nodes.size());  // whether a node or a caller of it is in one
  for (std::size_t i = 1; i < profile_.nodes.size(); ++i) {
    const auto& node = profile_.nodes[i];
    const auto object = profile_.functions[profile_.frames[node.frame].function].object;
    below[i] = below[node.caller] || (object < lost.size() && lost[object]);
  }
  return std::ranges::count_if(profile_.samples,
                               [&](const Sample& sample) { return below[sample.stack]; });
}

// A recording's names are in the build-id cache of the user who made it (weave/symbol_image.hpp),
// and so are files that were deleted before.
void Reader::note_lost_names() {
  if (const auto count = samples_in(places_->lost_files()); count != 0) {
    profile_.notes.push_back(
        fmt::format("{} of {} samples have C functions without names, of files that were replaced "
                    "while they were in use: restart the process to see them",
                    count, profile_.samples.size()));
  }
  if (const auto count = samples_in(places_->lost_names()); count != 0) {
    profile_.notes.push_back(fmt::format(
        "{} of {} samples have Python functions whose names are not on this machine, or are "
        "another user's: perf archive FILE there packs them from ~/.debug, and tar xf "
        "FILE.tar.bz2 -C ~/.debug unpacks them here",
        count, profile_.samples.size()));
  }
}

Profile Reader::read() {
  constexpr std::uint64_t kBetween = 4096;  // samples between calls of progress
  learn();
  profile_.clock = clock_of(input_);
  take_events();
  input_.rewind();
  perfdata::Sample sample;
  std::uint64_t count = 0;
  while (const auto record = input_.next()) {
    if (record->type != PERF_RECORD_SAMPLE) {
      continue;
    }
    if (input_.parse(*record, sample)) {
      take(sample);
    } else {
      ++unreadable_;
    }
    if (++count % kBetween == 0 &&
        !go_on(static_cast<double>(input_.position()) / static_cast<double>(input_.size()))) {
      break;
    }
  }
  name_stacks();
  judge_waits();
  judge_memory();
  if (auto incomplete = perfdata::incompleteness(input_.stack_counts()); !incomplete.empty()) {
    profile_.notes.push_back(std::move(incomplete));
  }
  std::ranges::move(perfdata::sentences(input_.target_gaps()), std::back_inserter(profile_.notes));
  note_unprocessed();
  note_losses();
  note_lost_names();
  std::ranges::stable_sort(profile_.samples, {}, &Sample::time);
  std::ranges::sort(profile_.forks, {}, [](const Fork& fork) {
    return std::pair{fork.pid, fork.time};
  });
  return std::move(profile_);
}

}  // namespace

std::variant<Profile, perfdata::UnsupportedFile> read_profile(const std::string& file,
                                                              const ReadOptions& options) {
  auto opened = Input::open(file);
  if (auto* const unsupported = std::get_if<perfdata::UnsupportedFile>(&opened)) {
    return std::move(*unsupported);
  }
  return Reader{std::get<Input>(opened), file, options}.read();
}

}  // namespace pyinject::report
