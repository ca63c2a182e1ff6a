// The second pass: copies records, adds stacks to samples, and makes the images with the names.
#include "base/text.hpp"
#include "elf/elf_file.hpp"
#include "weave/weaver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include <fcntl.h>
#include <sys/mman.h>

namespace pyinject::weave {

namespace {

using perfdata::Record;

constexpr std::uint64_t kUserMark = PERF_CONTEXT_USER;

bool is_anonymous_code(const perfdata::Mapping& mapping) {
  return (mapping.protection & PROT_EXEC) != 0 && mapping.file.starts_with("//anon");
}

std::vector<std::byte> bytes_of(std::string_view hexadecimal) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at + 1 < hexadecimal.size(); at += 2) {
    bytes.push_back(static_cast<std::byte>(
        base::parse_number<std::uint8_t>(hexadecimal.substr(at, 2), 16).value_or(0)));
  }
  return bytes;
}

}  // namespace

bool Weaver::rewrite(int fd) {
  input_.rewind();
  perfdata::Output output{fd, input_,
                          [this](const perfdata::Event& event) { return takes_period(event); }};
  std::ranges::copy_if(processes_, std::inserter(unnamed_, unnamed_.end()),
                       [this](std::uint32_t pid) { return !spaces_.origin(pid); });
  SampleWork work;
  constexpr double kBefore = 0.2;
  if (std::ranges::any_of(input_.events(), &perfdata::Event::defers_user_chains)) {
    deferred_.emplace(input_.another());
  }
  while (const auto record = input_.next()) {
    if (deferred_) {
      deferred_->pass(*record);
    }
    if (!waits_written_ && !is_before_waits(*record)) {
      write_waits(output, work);
    }
    write(output, *record, work);
    if (!go_on(kBefore + (1 - kBefore) * static_cast<double>(input_.position()) /
                             static_cast<double>(std::max<std::uint64_t>(input_.size(), 1)))) {
      return false;
    }
  }
  if (!waits_written_) {
    write_waits(output, work);
  }
  auto build_ids = make_images();
  add_replaced(build_ids);
  std::vector<perfdata::Bytes> images;
  for (const auto& one : summary_.images) {
    images.emplace_back(one.image.bytes);
  }
  summary_.images_left_out = output.finish(build_ids, images, summary_.stacks, options_.gaps);
  summarize_dropped();
  summary_.bytes_after = output.size();
  summary_.damage = input_.damage();
  return true;
}

// Comes after the first mapping of a program, which RECORD has written, and at its time: perf's own
// COMM or FORK record may precede that mapping, and makes perf forget everything before. Processes
// forked during the recording inherit it, until they exec.
void Weaver::name_range(perfdata::Output& output, const Record& record, std::uint32_t pid) {
  if (unnamed_.erase(pid) == 0) {
    return;
  }
  perfdata::Mapping mapping;
  mapping.pid = mapping.tid = pid;
  mapping.start = synthetic_->range().begin;
  mapping.size = SyntheticNames::kSize;
  mapping.page_offset = mapping.start;
  mapping.protection = PROT_READ | PROT_EXEC;
  mapping.file = options_.image_path(0);
  if (!output.write_mapping_like(record, mapping)) {
    output.write_mapping(mapping);
  }
}

// The same for all events with these attributes.
bool Weaver::takes_period(const perfdata::Event& event) const {
  const auto is_entered = [&](const auto& each) {
    return !each.second.is_end && event.samples_each_hit_of(each.first->attr.config);
  };
  return (switch_periods_ && event.samples_each_switch()) ||
         std::ranges::any_of(call_events_, is_entered) ||
         std::ranges::any_of(memory_events_, is_entered);
}

bool Weaver::is_end_of_call(const Record& record) const {
  if (call_events_.empty()) {
    return false;
  }
  const auto found = call_events_.find(input_.event_of(record));
  return found != call_events_.end() && found->second.is_end;
}

void Weaver::write(perfdata::Output& output, const Record& record, SampleWork& work) {
  if (record.type == PERF_RECORD_SAMPLE) {
    if (is_end_of_call(record) || keeps_no_memory(record)) {
      return;
    }
    if (input_.parse(record, work.sample)) {
      if (context_.wanted && !context_.wanted(work.sample.pid)) {
        ++summary_.unwanted;
        return;
      }
      if (work.sample.time < options_.begun_at) {
        return;
      }
      ++summary_.samples;
      if (const auto adopted = adopted_.extract(work.sample.pid); !adopted.empty()) {
        const auto child = adopted.key();
        const auto parent = adopted.mapped();
        output.write_fork(
            {.pid = child, .parent_pid = parent, .tid = child, .parent_tid = parent, .time = 0});
      }
      name_sampled(output, work.sample);
      write_sample(output, work);
    } else if (const auto* const event = input_.event_of(record);
               event != nullptr && !event->has_user_stacks() && !event->defers_user_chains() &&
               !takes_period(*event)) {
      output.write(record);
      all_names_ = true;
    } else {
      ++summary_.unreadable;
    }
    return;
  }
  if (record.type == perfdata::kCallchainDeferred) {
    return;  // is in its samples
  }
  const auto mapping = perfdata::parse_mapping(record);
  if (mapping && record.type == PERF_RECORD_MMAP2 && is_anonymous_code(*mapping) &&
      has_names(mapping->pid, mapping->start, mapping->start + mapping->size)) {
    write_renamed(output, record, *mapping);
  } else if (mapping && (record.misc & PERF_RECORD_MISC_MMAP_DATA) != 0 && !needs_data_) {
    ++summary_.data_mappings;
  } else if (!write_synthesized_comm(output, record)) {
    output.write(record);
    name_started(output, record);
  }
  if (mapping && (record.misc & PERF_RECORD_MISC_MMAP_DATA) == 0) {
    name_range(output, record, mapping->pid);
  } else if (const auto command = perfdata::parse_command(record);
             command && command->exec && processes_.contains(command->pid)) {
    unnamed_.insert(command->pid);
  }
}

// Writes the same record at the same time, for the image with the names instead of anonymous
// memory.
void Weaver::write_renamed(perfdata::Output& output, const Record& record,
                           perfdata::Mapping mapping) {
  mapping.page_offset = mapping.start;
  mapping.major = mapping.minor = 0;
  mapping.inode = mapping.generation = 0;
  mapping.build_id.clear();
  mapping.file = options_.image_path(mapping.pid);
  if (!output.write_mapping_like(record, mapping)) {
    output.write(record);
  }
}

void Weaver::write_sample(perfdata::Output& output, SampleWork& work) {
  const auto& sample = work.sample;
  work.clear_stack();
  insert_deferred(work);
  const auto user =
      std::find(sample.chain.rbegin(), sample.chain.rend(), kUserMark).base();  // one past the mark
  const bool has_user = user != sample.chain.begin();
  work.result.assign(sample.chain.begin(), has_user ? user : sample.chain.end());
  const auto begin = has_user ? work.result.size() : 0;
  const bool copied = sample.event->has_user_stacks();
  work.chain.assign(has_user ? user : sample.chain.end(), sample.chain.end());
  if (copied && sample.register_abi != PERF_SAMPLE_REGS_ABI_NONE) {
    work.chain.clear();
    unwind_user_part(work);
    if (!has_user) {
      work.result.push_back(kUserMark);
    }
  }
  const bool native = !copied && take_native(work);
  if (native && !has_user) {
    work.result.push_back(kUserMark);
  }
  if (!copied && !native) {
    drop_unmapped(work);
  }
  if (work.lacks_user_part && work.chain.empty()) {
    mark_incomplete(work, summary_.no_user_part, "[no deferred callchain]");
  }
  if (writes_map(work)) {
    ++summary_.map_writes;
    --summary_.samples;
    summary_.unwound -= work.registers.empty() ? 0 : 1;
    if (work.incomplete_counter != nullptr) {
      --*work.incomplete_counter;
    }
    return;
  }
  add_python(work, !copied && !native);
  const auto period = period_of(work);
  if (options_.flags.python_only) {
    keep_python(work, begin);
  }
  mark_names(work, begin);
  mark_deleted(work, begin);
  summary_.longest = std::max(summary_.longest, work.result.size());
  const bool may_be_cut = work.result.size() > kMayBeCut && spaces_.settled_since(sample.pid);
  const auto mark =
      may_be_cut ? std::optional{address_of_mark(std::string{kCutCallchain})} : std::nullopt;
  if (!output.write_sample(sample, work.result, period, mark)) {
    ++summary_.limited;
    work.kind = work.kind ? std::optional{StackKind::kCut} : std::nullopt;
  }
  if (work.kind) {
    summary_.stacks.add(*work.kind);
  }
}

// Takes the C functions that were unwound when the sample was taken. Without them, and without a
// user part by the kernel, at least the innermost function is known.
bool Weaver::take_native(SampleWork& work) {
  const auto& event = *work.sample.event;
  if (!event.samples(PERF_SAMPLE_CALLCHAIN)) {
    return false;
  }
  auto native =
      context_.native == nullptr ? NativeStack{} : context_.native->native_at(query_of(work));
  if (!native.chain.empty()) {
    work.chain = std::move(native.chain);
    const auto* const last = spaces_.find(work.sample.pid, work.sample.time, work.chain.back());
    mark_end(work, {.end = native.end, .file = last});
    return true;
  }
  if (event.attr.exclude_callchain_user != 0 && work.chain.empty() &&
      (work.sample.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER) {
    work.chain.push_back(work.sample.ip);
    return true;
  }
  return false;
}

// nullopt: the sample's own.
std::optional<std::uint64_t> Weaver::period_of(SampleWork& work) {
  const auto& sample = work.sample;
  if (!is_thread(sample.tid)) {
    return std::nullopt;
  }
  if (switch_periods_ && sample.event->samples_each_switch()) {
    const auto absence = off_cpu_.absence(sample.tid, sample.time);
    if (!absence) {
      return 1;
    }
    ++summary_.off_cpu;
    if (absence->preempted && !work.chain.empty()) {
      mark(work, "[preempted]");
    }
    return absence->nanoseconds;
  }
  if (const auto memory = memory_events_.find(sample.event); memory != memory_events_.end()) {
    const bool block = memory->second.of_allocator();
    const auto bytes = (block ? blocks_ : kept_).of(sample.tid, sample.time);
    (block ? summary_.kept_blocks_bytes : summary_.kept_bytes) += bytes;
    return bytes;
  }
  const auto event = call_events_.empty() ? call_events_.end() : call_events_.find(sample.event);
  if (event == call_events_.end()) {
    return std::nullopt;
  }
  const auto duration = calls_.of(sample.tid, sample.time, event->second.call);
  if (!duration) {
    ++summary_.untimed_calls;
    return 1;
  }
  ++summary_.timed_calls;
  summary_.lasting_calls += duration->lasts ? 1 : 0;
  return duration->nanoseconds;
}

// A target's map can have any number of names: keeps only those that samples hit. The user part of
// RESULT starts at FROM.
void Weaver::mark_names(const SampleWork& work, std::size_t from) {
  // Branch addresses are not parsed.
  all_names_ = all_names_ || work.sample.event->samples(PERF_SAMPLE_BRANCH_STACK);
  if (named_.empty()) {
    return;
  }
  maps_.mark_hit(work.sample.pid, work.sample.ip);
  for (auto at = from; at < work.result.size(); ++at) {
    // For a caller, perf looks up the byte before its return address.
    maps_.mark_hit(work.sample.pid, work.result[at]);
    maps_.mark_hit(work.sample.pid, work.result[at] - 1);
  }
}

// Drops the values that the kernel takes for callers beyond the end of a frame-pointer chain. Keeps
// addresses added by an earlier weave of the file, which are mapped in none of its processes.
void Weaver::drop_unmapped(SampleWork& work) const {
  const auto& sample = work.sample;
  auto& chain = work.chain;
  const auto was_named = [this](std::uint64_t address) {
    const auto behind = previous_name_ranges_.upper_bound(address);
    return behind != previous_name_ranges_.begin() &&
           address - *std::prev(behind) < SyntheticNames::kSize;
  };
  while (chain.size() > 1 && spaces_.settled_since(sample.pid) && !was_named(chain.back()) &&
         spaces_.find(sample.pid, sample.time, chain.back()) == nullptr) {
    chain.pop_back();
  }
}

// Replaces the placeholder of a deferred user part, which ends the callchain, by that part.
void Weaver::insert_deferred(SampleWork& work) {
  auto& chain = work.sample.chain;
  const auto placeholder = std::ranges::find(chain, perfdata::kContextUserDeferred);
  if (placeholder == chain.end()) {
    return;
  }
  work.deferred = true;
  const auto* const addresses =
      deferred_ && chain.end() - placeholder > 1
          ? deferred_->find({.tid = work.sample.tid, .cookie = placeholder[1]})
          : nullptr;
  chain.erase(placeholder, chain.end());
  chain.push_back(kUserMark);
  if (addresses != nullptr) {
    chain.insert(chain.end(), addresses->begin(), addresses->end());
  } else if (deferred_ && deferred_->full()) {
    drop(work.sample.pid, Limit::kDeferredChains);
  }
  work.lacks_user_part = chain.back() == kUserMark;
}

void Weaver::unwind_user_part(SampleWork& work) {
  const auto& sample = work.sample;
  ++summary_.unwound;
  summary_.largest_copy = std::max(summary_.largest_copy, sample.stack_asked);
  const auto registers = unwind::from_perf(sample.registers, sample.register_mask);
  if (sample.register_abi != PERF_SAMPLE_REGS_ABI_64 || !registers) {
    if (registers) {
      work.chain.push_back(registers->pc());
    }
    mark_end(work, {.end = unwind::EndOfStack::kNoInformation});
    return;
  }
  work.stack = {.begin = registers->sp(),
                .bytes = sample.stack,
                .cut = sample.stack.size() >= sample.stack_asked};
  mark_end(work, unwinder_.unwind(sample.pid, sample.time, *registers, work.stack, work.chain,
                                  &work.registers));
}

void Weaver::summarize_dropped() {
  for (const auto& [family, count] : spaces_.emptied()) {
    drop(family, Limit::kForkedMappings, count);
  }
  for (const auto& [pid, count] : maps_.cut()) {
    drop(pid, Limit::kPerfMap, count);
  }
  for (const auto& [pid, count] : synthetic_->without_lines()) {
    drop(pid, Limit::kLines, count);
  }
  for (const auto& each : context_.dropped) {
    drop(each.pid, each.limit, each.count);
  }
  for (const auto& [which, count] : dropped_) {
    const auto command = commands_.find(which.first);
    summary_.dropped.push_back({.pid = which.first,
                                .command = command == commands_.end() ? "" : command->second,
                                .limit = which.second,
                                .count = count});
  }
  std::ranges::stable_sort(summary_.dropped, std::ranges::greater{}, &Dropped::count);
}

// Marks a stack that lacks its outer end, at its root.
void Weaver::mark_end(SampleWork& work, const unwind::Unwound& unwound) {
  if (unwound.too_slow) {
    drop(work.sample.pid, Limit::kUnwindSteps);
  } else if (unwound.too_large) {
    drop(work.sample.pid, Limit::kUnwindTables);
  }
  summary_.by_frame_pointer += unwound.by_frame_pointer > 0 ? 1 : 0;
  const auto file = [&unwound] {
    return unwound.file == nullptr ? "unknown memory" : base::printable(unwound.file->path);
  };
  switch (unwound.end) {
    case unwind::EndOfStack::kWhole:
      return;
    case unwind::EndOfStack::kCut:
      mark_incomplete(work, summary_.cut, "[truncated: stack dump]");
      return;
    case unwind::EndOfStack::kLimit:
      mark_incomplete(work, summary_.limited,
                      fmt::format("[truncated: {} frames]", work.chain.size()));
      return;
    case unwind::EndOfStack::kNoInformation:
      mark_incomplete(work, summary_.no_information, fmt::format("[no unwind info: {}]", file()));
      return;
    case unwind::EndOfStack::kBroken:
      mark_incomplete(work, summary_.broken, fmt::format("[broken stack: {}]", file()));
      return;
  }
}

void Weaver::mark_incomplete(SampleWork& work, std::uint64_t& counter, const std::string& name) {
  ++counter;
  work.incomplete_counter = &counter;
  if (spaces_.settled_since(work.sample.pid)) {  // otherwise perf finds no names in that process
    work.chain.push_back(address_of_mark(name));
  }
}

void Weaver::learn_deleted() {
  constexpr std::string_view kDeleted = " (deleted)";
  constexpr std::size_t kMost = 4096;
  for (const auto& mapped : spaces_.files()) {
    if (mapped.executable && mapped.path.starts_with('/') && !mapped.path.starts_with("/memfd:") &&
        mapped.path.ends_with(kDeleted) && deleted_.size() < kMost) {
      deleted_.push_back(&mapped);
    }
  }
  std::ranges::sort(deleted_, {}, &unwind::MappedFile::begin);
}

// Notes which of the deleted files the sample is in. The user part of RESULT starts at FROM. Of
// mappings that overlap, in different processes, it notes one.
void Weaver::mark_deleted(const SampleWork& work, std::size_t from) {
  if (deleted_.empty()) {
    return;
  }
  for (auto at = from; at < work.result.size(); ++at) {
    const auto behind =
        std::ranges::upper_bound(deleted_, work.result[at], {}, &unwind::MappedFile::begin);
    if (behind != deleted_.begin() && work.result[at] < (*std::prev(behind))->end) {
      deleted_hit_.try_emplace((*std::prev(behind))->path, *std::prev(behind));
    }
  }
}

// perf finds the names of their functions in its cache, by the build-id that it could not read from
// a path.
void Weaver::add_replaced(std::vector<perfdata::BuildId>& ids) {
  constexpr std::size_t kMost = 16;
  constexpr std::size_t kMostOfId = 40;  // digits
  for (const auto& [path, mapped] : deleted_hit_) {
    for (auto& file : files_.candidates(*mapped)) {
      base::UniqueFd copy{::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)};
      const auto opened = elf::ElfFile::open(std::move(file));
      const auto* const elf = std::get_if<elf::ElfFile>(&opened);
      const auto id = elf == nullptr ? std::nullopt : elf->build_id();
      if (id && id->size() <= kMostOfId && copy.valid() && replaced_.size() < kMost) {
        ids.push_back({.id = bytes_of(*id), .file = mapped->path});
        replaced_.push_back({.path = mapped->path, .file = std::move(copy)});
        break;
      }
    }
  }
}

std::vector<perfdata::BuildId> Weaver::make_images() {
  std::vector<perfdata::BuildId> ids;
  const auto add = [&](std::uint32_t pid, std::span<const ImageSymbol> symbols,
                       std::span<const AddressRange> ranges) {
    auto image = make_symbol_image(symbols, ranges);
    auto path = options_.image_path(pid);
    ids.push_back({.id = image.build_id, .file = path});
    summary_.images.push_back({.path = std::move(path), .image = std::move(image)});
  };
  for (const auto& [pid, ranges] : named_) {
    std::vector<ImageSymbol> symbols;
    for (const auto& symbol : all_names_ ? maps_.of(pid) : maps_.hit(pid)) {
      symbols.push_back(
          {.address = symbol.start, .size = symbol.size, .name = base::printable(symbol.name)});
    }
    if (!symbols.empty()) {
      add(pid, symbols, ranges);
    }
  }
  if (!synthetic_->symbols().empty()) {
    add(0, synthetic_->symbols(), std::array{synthetic_->range()});
  }
  return ids;
}

}  // namespace pyinject::weave
