#include "weave/recorded_processes.hpp"

#include "base/text.hpp"
#include "weave/synthetic_names.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include <sys/mman.h>

namespace pyinject::weave {

using perfdata::Record;

namespace {

// What FIND(pid, time) finds for PID at TIME, or for its nearest ancestor by forks.
template <typename Find>
auto of_nearest(const unwind::AddressSpaces& spaces, std::uint32_t pid, std::uint64_t time,
                const Find& find) -> decltype(find(pid, time)) {
  for (int depth = 0; depth < kMostAncestors; ++depth) {
    if (const auto* const found = find(pid, time)) {
      return found;
    }
    const auto origin = spaces.origin(pid, time);
    if (!origin) {
      return nullptr;
    }
    pid = origin->parent;
    time = origin->time;
  }
  return nullptr;
}

}  // namespace

std::optional<unwind::MappedFile> mapped_file(perfdata::Mapping& mapping) {
  std::uint64_t end = 0;
  if (__builtin_add_overflow(mapping.start, mapping.size, &end)) {
    return std::nullopt;
  }
  return unwind::MappedFile{.begin = mapping.start,
                            .end = end,
                            .offset = mapping.page_offset,
                            .executable = (mapping.protection & PROT_EXEC) != 0,
                            .path = std::move(mapping.file),
                            .device_major = mapping.major,
                            .device_minor = mapping.minor,
                            .inode = mapping.inode,
                            .build_id = base::hexadecimal(mapping.build_id),
                            .mapped_by = mapping.pid};
}

RecordedProcesses::RecordedProcesses(const RecordingContext& context, const perfdata::Input& input,
                                     std::shared_ptr<base::RecordingBudget> budget)
    : context_{context},
      input_{input},
      spaces_{budget},
      maps_{spaces_,
            [this](unwind::ProcessNumber pid) {
              return context_.open_map ? context_.open_map(pid) : base::UniqueFd{};
            },
            std::move(budget)} {}

void RecordedProcesses::learn(const Record& record) {
  if (record.type == PERF_RECORD_SAMPLE) {
    learn_sample(record);
  } else if (auto mapping = perfdata::parse_mapping(record)) {
    learn_mapping(record, *mapping);
  } else if (record.type == PERF_RECORD_FORK) {
    learn_fork(record);
  } else {
    learn_command(record);
  }
}

void RecordedProcesses::learn_sample(const Record& record) {
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

void RecordedProcesses::learn_mapping(const Record& record, perfdata::Mapping& mapping) {
  if (mapping.pid == ~std::uint32_t{0} ||
      (record.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
    return;
  }
  auto file = mapped_file(mapping);
  if (!file) {
    return;
  }
  processes_.insert(mapping.pid);
  if (mapping.size == SyntheticNames::kSize && mapping.page_offset == mapping.start) {
    previous_name_ranges_.insert(mapping.start);
  }
  spaces_.map(input_.time_of(record).value_or(0), mapping.pid, *std::move(file));
}

void RecordedProcesses::learn_fork(const Record& record) {
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
}

void RecordedProcesses::learn_command(const Record& record) {
  const auto command = perfdata::parse_command(record);
  if (!command) {
    return;
  }
  introduced_.insert(command->pid);
  if (command->pid == command->tid) {
    commands_[command->pid] = command->name;
  }
  if (command->exec) {
    spaces_.exec(input_.time_of(record).value_or(0), command->pid);
    forked_.erase(command->pid);
  }
}

void RecordedProcesses::complete() {
  spaces_.complete();
  adopt_orphans();
  for (const auto& file : spaces_.files()) {
    if (file.executable && file.path.starts_with("//anon") &&
        has_names(file.mapped_by, file.begin, file.end)) {
      named_[file.mapped_by].push_back({.begin = file.begin, .end = file.end});
    }
  }
}

// For a process that was forked after perf had opened its events and before these reported forks,
// or the fork record of which was lost: it is the child of the process that has code at the
// addresses where it was seen. Unrelated processes have code at different addresses.
void RecordedProcesses::adopt_orphans() {
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

const ForkedThread* RecordedProcesses::forked_by(std::uint32_t pid) const {
  const auto found = forked_.find(pid);
  return found == forked_.end() ? nullptr : &found->second;
}

std::string RecordedProcesses::command(std::uint32_t pid) const {
  const auto found = commands_.find(pid);
  return found == commands_.end() ? std::string{} : found->second;
}

const Interpreter* RecordedProcesses::interpreter(std::uint32_t pid, std::uint64_t time) const {
  return of_nearest(spaces_, pid, time, [this](std::uint32_t at, std::uint64_t then) {
    const auto found = context_.interpreters.find(at);
    if (found == context_.interpreters.end()) {
      return static_cast<const Interpreter*>(nullptr);
    }
    const auto ran = std::ranges::find_if(found->second, [&](const Interpreter& one) {
      return !one.seen || spaces_.began(at, *one.seen) == spaces_.began(at, then);
    });
    return ran == found->second.end() ? nullptr : &*ran;
  });
}

const MapWriter* RecordedProcesses::map_writer(std::uint32_t pid, std::uint64_t time) const {
  return of_nearest(spaces_, pid, time, [this](std::uint32_t at, std::uint64_t) {
    const auto found = context_.map_writers.find(at);
    return found == context_.map_writers.end() ? nullptr : &found->second;
  });
}

bool RecordedProcesses::lies_in_anonymous_code(std::uint32_t pid, std::uint64_t time,
                                               std::uint64_t address) const {
  const auto* const file = spaces_.find(pid, time, address);
  return file != nullptr && file->executable && file->path.starts_with("//anon");
}

bool RecordedProcesses::has_names(std::uint32_t pid, std::uint64_t begin, std::uint64_t end) const {
  const auto& symbols = maps_.of(pid);
  const auto at = std::ranges::lower_bound(symbols, begin, {}, &MapSymbol::start);
  return at != symbols.end() && at->start < end;
}

bool RecordedProcesses::was_named(std::uint64_t address) const {
  const auto behind = previous_name_ranges_.upper_bound(address);
  return behind != previous_name_ranges_.begin() &&
         address - *std::prev(behind) < SyntheticNames::kSize;
}

}  // namespace pyinject::weave
