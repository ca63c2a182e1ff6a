#include "weave/rewriter.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include <sys/mman.h>

namespace pyinject::weave {

namespace {

using perfdata::Record;

constexpr std::size_t kMayBeCut = 4096;  // entries: more may not fit into a record

bool is_anonymous_code(const perfdata::Mapping& mapping) {
  return (mapping.protection & PROT_EXEC) != 0 && mapping.file.starts_with("//anon");
}

}  // namespace

Rewriter::Rewriter(const Learned& learned, int fd)
    : learned_{learned},
      summary_{learned.tally.summary},
      names_{learned.options, learned.context, learned.processes, learned.budget, learned.tally},
      user_{learned.context,  learned.processes, names_,
            learned.unwinder, learned.input,     learned.tally},
      builder_{learned.options, learned.context,  learned.processes, names_,
               learned.files,   learned.unwinder, learned.tally},
      deleted_{learned.processes.spaces()},
      output_{fd, learned.input,
              [&periods = learned.periods](const perfdata::Event& event) {
                return periods.changes(event);
              }},
      adopted_{learned.processes.adopted()} {
  if (learned.options.flags.python_only) {
    python_only_.emplace(learned.processes, names_, learned.files, learned.input);
  }
  std::ranges::copy_if(learned.processes.all(), std::inserter(unnamed_, unnamed_.end()),
                       [&](std::uint32_t pid) { return !learned.processes.spaces().origin(pid); });
}

bool Rewriter::rewrite(const std::function<bool(double)>& go_on) {
  auto& input = learned_.input;
  input.rewind();
  while (const auto record = input.next()) {
    user_.pass(*record);
    if (!waits_written_ && !is_before_waits(*record)) {
      write_waits();
    }
    write(*record);
    if (!go_on(static_cast<double>(input.position()) /
               static_cast<double>(std::max<std::uint64_t>(input.size(), 1)))) {
      return false;
    }
  }
  if (!waits_written_) {
    write_waits();
  }
  finish();
  return true;
}

void Rewriter::finish() {
  auto build_ids = names_.finish();
  replaced_ = deleted_.replace(learned_.files, build_ids);
  std::vector<perfdata::Bytes> images;
  for (const auto& one : summary_.images) {
    images.emplace_back(one.image.bytes);
  }
  summary_.images_left_out =
      output_.finish(build_ids, images, summary_.stacks, learned_.options.gaps);
  summary_.bytes_after = output_.size();
  summary_.damage = learned_.input.damage();
}

// Comes after the first mapping of a process, or after its exec, which RECORD has written, and at
// its time: perf's own COMM or FORK record may precede that mapping, and makes perf forget
// everything before. Processes forked during the recording inherit it, until they exec.
void Rewriter::name_range(const Record& record, std::uint32_t pid) {
  if (unnamed_.erase(pid) == 0) {
    return;
  }
  perfdata::Mapping mapping;
  mapping.pid = mapping.tid = pid;
  mapping.start = names_.range().begin;
  mapping.size = SyntheticNames::kSize;
  mapping.page_offset = mapping.start;
  mapping.protection = PROT_READ | PROT_EXEC;
  mapping.file = learned_.options.image_path(0);
  if (!output_.write_mapping_like(record, mapping)) {
    output_.write_mapping(mapping);
  }
}

void Rewriter::write(const Record& record) {
  if (record.type == PERF_RECORD_SAMPLE) {
    if (!learned_.periods.is_left_out(record)) {
      write_wanted(record);
    }
    return;
  }
  if (record.type == perfdata::kCallchainDeferred) {
    return;  // is in its samples
  }
  const auto mapping = perfdata::parse_mapping(record);
  if (mapping && record.type == PERF_RECORD_MMAP2 && is_anonymous_code(*mapping) &&
      learned_.processes.has_names(mapping->pid, mapping->start, mapping->start + mapping->size)) {
    write_renamed(record, *mapping);
  } else if (mapping && (record.misc & PERF_RECORD_MISC_MMAP_DATA) != 0 &&
             !learned_.processes.needs_data()) {
    ++summary_.data_mappings;
  } else if (!write_synthesized_comm(record)) {
    output_.write(record);
    name_started(record);
  }
  if (mapping && (record.misc & PERF_RECORD_MISC_MMAP_DATA) == 0) {
    name_range(record, mapping->pid);
  } else if (const auto command = perfdata::parse_command(record);
             command && command->exec && learned_.processes.all().contains(command->pid)) {
    // At once: its first mapping may have come before, from another processor's buffer.
    unnamed_.insert(command->pid);
    name_range(record, command->pid);
  }
}

// A sample.
void Rewriter::write_wanted(const Record& record) {
  auto& sample = work_.sample;
  if (!learned_.input.parse(record, sample)) {
    const auto* const event = learned_.input.event_of(record);
    if (event != nullptr && !event->has_user_stacks() && !event->defers_user_chains() &&
        !learned_.periods.changes(*event)) {
      output_.write(record);
      names_.keep_all();
    } else {
      ++summary_.unreadable;
    }
    return;
  }
  if (learned_.context.wanted && !learned_.context.wanted(sample.pid)) {
    ++summary_.unwanted;
    return;
  }
  if (sample.time < learned_.options.begun_at) {
    return;
  }
  ++summary_.samples;
  if (const auto adopted = adopted_.extract(sample.pid); !adopted.empty()) {
    const auto child = adopted.key();
    const auto parent = adopted.mapped();
    output_.write_fork(
        {.pid = child, .parent_pid = parent, .tid = child, .parent_tid = parent, .time = 0});
  }
  name_sampled();
  write_sample();
}

// Writes the same record at the same time, for the image with the names instead of anonymous
// memory.
void Rewriter::write_renamed(const Record& record, perfdata::Mapping mapping) {
  mapping.page_offset = mapping.start;
  mapping.major = mapping.minor = 0;
  mapping.inode = mapping.generation = 0;
  mapping.build_id.clear();
  mapping.file = learned_.options.image_path(mapping.pid);
  if (!output_.write_mapping_like(record, mapping)) {
    output_.write(record);
  }
}

void Rewriter::write_sample() {
  const auto read = user_.read(work_);
  if (user_.writes_map(work_)) {
    return;
  }
  builder_.add_python(work_, read.by_frame_pointer);
  const auto period = learned_.periods.of(work_.sample);
  if (period.preempted && !work_.chain.empty()) {
    builder_.mark(work_, "[preempted]");
  }
  if (python_only_ && python_only_->reduce(work_, read.begin)) {
    ++summary_.reduced;
  }
  deleted_.note(std::span{work_.result}.subspan(std::min(read.begin, work_.result.size())));
  if (!write_result(read.begin, period.value)) {
    ++summary_.limited;
    work_.kind = work_.kind ? std::optional{perfdata::StackKind::kCut} : std::nullopt;
  }
  if (work_.kind) {
    summary_.stacks.add(*work_.kind);
  }
}

// False: the file cannot hold the whole callchain.
bool Rewriter::write_result(std::size_t begin, std::optional<std::uint64_t> period) {
  names_.note_hit(work_, begin);
  summary_.longest = std::max(summary_.longest, work_.result.size());
  const bool may_be_cut = work_.result.size() > kMayBeCut &&
                          learned_.processes.spaces().settled_since(work_.sample.pid);
  const auto mark =
      may_be_cut ? std::optional{names_.address_of_mark(std::string{kCutCallchain})} : std::nullopt;
  return output_.write_sample(work_.sample, work_.result, period, mark);
}

}  // namespace pyinject::weave
