// The second pass: every record as it was, samples with their stacks; and the images with the
// names.
#include "base/text.hpp"
#include "weave/weaver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include <sys/mman.h>

namespace pyinject::weave {

namespace {

using perfdata::Record;

constexpr std::uint64_t kUserMark = PERF_CONTEXT_USER;

bool is_anonymous_code(const perfdata::Mapping& mapping) {
  return (mapping.protection & PROT_EXEC) != 0 && mapping.file.starts_with("//anon");
}

}  // namespace

bool Weaver::rewrite(int fd) {
  input_.rewind();
  perfdata::Output output{fd, input_, switch_periods_};
  std::ranges::copy_if(processes_, std::inserter(unnamed_, unnamed_.end()),
                       [this](std::uint32_t pid) { return !spaces_.origin(pid); });
  SampleWork work;
  constexpr double kBefore = 0.2;
  while (const auto record = input_.next()) {
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
  output.finish(make_images());
  summarize_dropped();
  summary_.bytes_after = output.size();
  summary_.damage = input_.damage();
  return true;
}

// Behind a process's first mapping: a COMM or FORK record of perf's own may be in front of that, by
// which perf forgets what it knew. Those that were forked while it was recorded inherit it.
void Weaver::name_range(perfdata::Output& output, std::uint32_t pid) {
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
  output.write_mapping(mapping);
}

void Weaver::write(perfdata::Output& output, const Record& record, SampleWork& work) {
  if (record.type == PERF_RECORD_SAMPLE) {
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
      write_sample(output, work);
    } else if (const auto* const event = input_.event_of(record);
               event != nullptr && !event->has_user_stacks() &&
               !(switch_periods_ && event->samples_each_switch())) {
      output.write(record);
      all_names_ = true;
    } else {
      ++summary_.unreadable;
    }
    return;
  }
  const auto mapping = perfdata::parse_mapping(record);
  if (mapping && record.type == PERF_RECORD_MMAP2 && is_anonymous_code(*mapping) &&
      has_names(mapping->pid, mapping->start, mapping->start + mapping->size)) {
    write_renamed(output, record, *mapping);
  } else if (mapping && (record.misc & PERF_RECORD_MISC_MMAP_DATA) != 0 && !needs_data_) {
    ++summary_.data_mappings;
  } else {
    output.write(record);
  }
  if (mapping) {
    name_range(output, mapping->pid);
  }
}

// The same record, at the same time, of the image with the names instead of anonymous memory.
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
  const auto user =
      std::find(sample.chain.rbegin(), sample.chain.rend(), kUserMark).base();  // behind it
  const bool has_user = user != sample.chain.begin();
  work.clear_stack();
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
  if (!copied) {
    drop_unmapped(work);
  }
  add_python(work, !copied);
  std::uint64_t period = 1;
  if (switch_periods_ && sample.event->samples_each_switch() && is_thread(sample.tid)) {
    if (const auto absence = off_cpu_.absence(sample.tid, sample.time)) {
      period = absence->nanoseconds;
      ++summary_.off_cpu;
      if (absence->preempted && !work.chain.empty()) {
        mark(work, "[preempted]");
      }
    }
  }
  mark_names(work, begin);
  summary_.longest = std::max(summary_.longest, work.result.size());
  if (!output.write_sample(sample, work.result, period)) {
    ++summary_.limited;
  }
}

// A map of a target can have any number of names: of it only those are kept that a sample needs.
// What is in RESULT behind FROM is the user's part.
void Weaver::mark_names(const SampleWork& work, std::size_t from) {
  // Addresses of branches are not taken apart.
  all_names_ = all_names_ || work.sample.event->samples(PERF_SAMPLE_BRANCH_STACK);
  if (named_.empty()) {
    return;
  }
  maps_.mark_hit(work.sample.pid, work.sample.ip);
  for (auto at = from; at < work.result.size(); ++at) {
    // Of a caller perf looks the byte before its return address up.
    maps_.mark_hit(work.sample.pid, work.result[at]);
    maps_.mark_hit(work.sample.pid, work.result[at] - 1);
  }
}

// Where frame pointers end the kernel takes what it finds for some more. What a file has got that
// is woven for a second time is mapped in none of its processes.
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

// A stack that is not whole says so, at its root.
void Weaver::mark_end(SampleWork& work, const unwind::Unwound& unwound) {
  if (unwound.too_slow) {
    drop(work.sample.pid, Limit::kUnwindSteps);
  } else if (unwound.too_large) {
    drop(work.sample.pid, Limit::kUnwindTables);
  }
  summary_.by_frame_pointer += unwound.by_frame_pointer > 0 ? 1 : 0;
  std::string name;
  switch (unwound.end) {
    case unwind::EndOfStack::kWhole:
      return;
    case unwind::EndOfStack::kCut:
      work.incomplete_counter = &summary_.cut;
      name = "[truncated: stack dump]";
      break;
    case unwind::EndOfStack::kLimit:
      work.incomplete_counter = &summary_.limited;
      name = fmt::format("[truncated: {} frames]", unwind::kMostFrames);
      break;
    case unwind::EndOfStack::kNoInformation:
      work.incomplete_counter = &summary_.no_information;
      name = fmt::format("[no unwind info: {}]", unwound.file == nullptr
                                                     ? "unknown memory"
                                                     : base::printable(unwound.file->path));
      break;
    case unwind::EndOfStack::kBroken:
      work.incomplete_counter = &summary_.broken;
      name = fmt::format("[broken stack: {}]", unwound.file == nullptr
                                                   ? "unknown memory"
                                                   : base::printable(unwound.file->path));
      break;
  }
  ++*work.incomplete_counter;
  if (spaces_.settled_since(work.sample.pid)) {  // else perf knows no names in that process
    work.chain.push_back(synthetic_->address(name));
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
