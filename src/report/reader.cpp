#include "pyinject/report/reader.hpp"

#include "base/text.hpp"
#include "perfdata/record.hpp"
#include "report/clock.hpp"
#include "report/code_places.hpp"
#include "report/collections.hpp"
#include "report/names.hpp"
#include "report/pair_numbers.hpp"
#include "report/raw_stacks.hpp"
#include "report/recorded_events.hpp"
#include "report/thread_names.hpp"
#include "unwind/address_spaces.hpp"
#include "weave/losses.hpp"
#include "weave/recorded_processes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::report {

namespace {

using perfdata::Input;
using perfdata::Record;

// Callchains hold marks above this (linux, include/uapi/linux/perf_event.h, PERF_CONTEXT_MAX).
constexpr auto kFirstMark = static_cast<std::uint64_t>(PERF_CONTEXT_MAX);

bool has_user_part(const perfdata::Sample& sample) {
  return std::ranges::find(sample.chain, static_cast<std::uint64_t>(PERF_CONTEXT_USER)) !=
         sample.chain.end();
}

// Samples that are not whole.
struct Missing {
  std::uint64_t no_room = 0;
  std::uint64_t unreadable = 0;
  std::uint64_t copied = 0;       // they have a copied stack
  std::uint64_t kernel_only = 0;  // they have no more than the kernel's part of a stack
};

// The two parts of a callchain, outermost first.
struct Halves {
  std::vector<std::uint64_t> user;
  std::vector<std::uint64_t> kernel;
};

void divide(const perfdata::Sample& sample, Halves& out) {
  out.user.clear();
  out.kernel.clear();
  bool in_kernel = (sample.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
  if (sample.chain.empty()) {
    (in_kernel ? out.kernel : out.user).push_back(sample.ip);
  }
  for (const auto address : sample.chain) {
    if (address < kFirstMark) {
      (in_kernel ? out.kernel : out.user).push_back(address);
    } else {
      in_kernel = address == static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL) ||
                  address == static_cast<std::uint64_t>(PERF_CONTEXT_HV);
    }
  }
  std::ranges::reverse(out.user);
  std::ranges::reverse(out.kernel);
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
  void take(perfdata::Sample& sample);
  [[nodiscard]] std::uint32_t thread_of(const perfdata::Sample& sample);
  void name_stacks();
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
  struct {
    std::string symbol;  // its first one; empty: unknown
    std::uint64_t address = 0;
  } kernel_;
  std::optional<CodePlaces> places_;
  std::optional<RawStacks> stacks_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::uint32_t> threads_;
  weave::Losses losses_;
  Missing missing_;
  std::vector<std::uint32_t> innermost_;  // places, by sample, whose stack is that of the caller
  Halves halves_;                         // of the current sample
  Profile profile_;
  std::optional<RecordedEvents> events_;
};

bool Reader::go_on(double part) { return !options_.progress || options_.progress(part); }

void Reader::learn_mapping(const Record& record, perfdata::Mapping mapping) {
  if ((record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
    constexpr std::string_view kKernelFile = "[kernel.kallsyms]";
    if (mapping.file.starts_with(kKernelFile) && kernel_.symbol.empty()) {
      kernel_ = {.symbol = mapping.file.substr(kKernelFile.size()), .address = mapping.page_offset};
    }
    return;
  }
  if (auto file = weave::mapped_file(mapping)) {
    spaces_.map(input_.time_of(record).value_or(0), mapping.pid, *std::move(file));
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
    losses_.learn(input_, record);
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
  if (!kernel_.symbol.empty()) {
    places_->set_kernel(kernel_.symbol, kernel_.address);
  }
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

void Reader::take(perfdata::Sample& sample) {
  if (!sample.group.empty()) {
    const bool known = events_->each_of_group(sample, [this](perfdata::Sample& one) { take(one); });
    missing_.unreadable += known ? 0 : 1;
    return;
  }
  const auto event = events_->number_of(sample.event);
  if (!event) {
    return;
  }
  const bool copied = sample.event->has_user_stacks();
  missing_.copied += copied ? 1 : 0;
  missing_.kernel_only +=
      !copied && sample.event->attr.exclude_callchain_user != 0 && !has_user_part(sample) ? 1 : 0;
  RawStack stack;
  if (stacks_->full()) {
    ++missing_.no_room;
  } else {
    divide(sample, halves_);
    stack = stacks_->add(sample.pid, sample.time, halves_.user, halves_.kernel);
  }
  innermost_.push_back(stack.innermost);
  profile_.samples.push_back({.time = sample.time,
                              .period = sample.period,
                              .stack = stack.caller,
                              .thread = thread_of(sample),
                              .event = *event});
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

void Reader::note_losses() {
  auto& notes = profile_.notes;
  const auto lost = losses_.samples(input_);
  profile_.lost = lost;
  if (lost != 0) {
    notes.push_back(fmt::format("perf has lost {}, which may have been samples",
                                base::counted(lost, "record")));
  }
  if (input_.damaged()) {
    notes.push_back(fmt::format("the file is damaged: {}", input_.damage()));
  }
  if (missing_.no_room != 0) {
    notes.push_back(fmt::format("{} samples have no stack: there are too many distinct ones",
                                missing_.no_room));
  }
  if (missing_.unreadable != 0) {
    notes.push_back(fmt::format("{} samples cannot be read", missing_.unreadable));
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
  if (missing_.copied != 0) {
    profile_.notes.push_back(fmt::format(
        "the copied stacks of {} of {} samples are not unwound, only their innermost functions are "
        "shown: perf-pyinject weave {} -o FILE unwinds them",
        missing_.copied, profile_.samples.size(), name));
  }
  // Post-processing adds the rest, and counts the stacks.
  const bool processed = input_.features().stack_counts().all() != 0;
  if (missing_.kernel_only != 0 && !processed) {
    profile_.notes.push_back(fmt::format(
        "{} of {} samples have only the kernel's part of their stacks: perf recorded no more "
        "(--kernel-callchains), and they were not post-processed: record again",
        missing_.kernel_only, profile_.samples.size()));
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
  if (places_->late_symbols()) {
    profile_.notes.push_back(fmt::format(
        "debug files from DEBUGINFOD_URLS were not there within {} s: some C functions have no "
        "names; a further run gets more of them",
        weave::DebugServers::kMost.count()));
  }
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
  events_.emplace(input_, profile_);
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
      ++missing_.unreadable;
    }
    if (++count % kBetween == 0 &&
        !go_on(static_cast<double>(input_.position()) / static_cast<double>(input_.size()))) {
      break;
    }
  }
  name_stacks();
  events_->judge();
  if (auto incomplete = perfdata::incompleteness(input_.features().stack_counts());
      !incomplete.empty()) {
    profile_.notes.push_back(std::move(incomplete));
  }
  std::ranges::move(perfdata::sentences(input_.features().target_gaps()),
                    std::back_inserter(profile_.notes));
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
