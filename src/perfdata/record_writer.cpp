#include "perfdata/record_writer.hpp"

#include "perfdata/byte_writer.hpp"
#include "perfdata/identity.hpp"
#include "perfdata/limits.hpp"

#include <algorithm>
#include <climits>

namespace pyinject::perfdata {

namespace {

constexpr std::size_t kMostCommand = 15;  // TASK_COMM_LEN without its zero: perf has no more room
constexpr std::size_t kMappingName = 72;  // perf_event_open(2): offset of the name in an MMAP2

// Writes up to the name. MISC: all bits except MMAP_BUILD_ID, which is set as needed.
ByteWriter start_mapping(const Mapping& mapping, unsigned misc, std::vector<std::byte>& into) {
  const bool has_build_id = !mapping.build_id.empty();
  misc = has_build_id ? misc | PERF_RECORD_MISC_MMAP_BUILD_ID
                      : misc & ~unsigned{PERF_RECORD_MISC_MMAP_BUILD_ID};
  ByteWriter writer{into, PERF_RECORD_MMAP2, static_cast<std::uint16_t>(misc)};
  writer.number(mapping.pid);
  writer.number(mapping.tid);
  writer.number(mapping.start);
  writer.number(mapping.size);
  writer.number(mapping.page_offset);
  if (has_build_id) {
    const auto id = Bytes{mapping.build_id}.first(std::min(mapping.build_id.size(), kMostBuildId));
    writer.number(static_cast<std::uint32_t>(id.size()));  // u8, then three reserved bytes
    writer.append(id);
    writer.zeros(kMostBuildId - id.size());
  } else {
    writer.number(mapping.major);
    writer.number(mapping.minor);
    writer.number(mapping.inode);
    writer.number(mapping.generation);
  }
  writer.number(mapping.protection);
  writer.number(mapping.flags);
  writer.text(mapping.file, PATH_MAX - 1, kWord);
  return writer;
}

constexpr std::size_t kCommandName = 16;  // perf_event_open(2): offset of the name in a COMM
constexpr std::size_t kTaskSize = 32;     // size of a FORK or EXIT without its sample id

// nullopt: RECORD is of another type, or damaged.
std::optional<std::size_t> size_without_sample_id(const Record& record) {
  std::optional<std::size_t> size;
  if (const auto command = parse_command(record)) {
    size = kCommandName + (command->name.size() / kWord + 1) * kWord;
  } else if (parse_task(record)) {
    size = kTaskSize;
  } else if (const auto mapping = parse_mapping(record);
             mapping && record.type == PERF_RECORD_MMAP2) {
    size = kMappingName + (mapping->file.size() / kWord + 1) * kWord;
  }
  return size && *size <= record.bytes.size() ? size : std::nullopt;
}

}  // namespace

void make_mapping(const Mapping& mapping, std::size_t sample_id, std::vector<std::byte>& into) {
  auto writer = start_mapping(mapping, PERF_RECORD_MISC_USER, into);
  writer.zeros(sample_id);
  writer.finish();
}

bool make_mapping_like(const Record& like, const Mapping& mapping, std::vector<std::byte>& into) {
  const auto size = size_without_sample_id(like);
  if (!size) {
    return false;
  }
  const bool maps = like.type == PERF_RECORD_MMAP2;
  auto writer = start_mapping(mapping, maps ? like.misc : PERF_RECORD_MISC_USER, into);
  writer.append(like.bytes.subspan(*size));
  if (into.size() > kMostRecord) {
    return false;
  }
  writer.finish();
  return true;
}

void make_fork(const Task& task, std::size_t sample_id, std::vector<std::byte>& into) {
  ByteWriter writer{into, PERF_RECORD_FORK, 0};
  writer.number(task.pid);
  writer.number(task.parent_pid);
  writer.number(task.tid);
  writer.number(task.parent_tid);
  writer.number(task.time);
  writer.zeros(sample_id);
  writer.finish();
}

namespace {

ByteWriter start_command(const Command& command, std::vector<std::byte>& into) {
  ByteWriter writer{into, PERF_RECORD_COMM,
                    static_cast<std::uint16_t>(command.exec ? PERF_RECORD_MISC_COMM_EXEC : 0)};
  writer.number(command.pid);
  writer.number(command.tid);
  writer.text(command.name, kMostCommand, kWord);
  return writer;
}

}  // namespace

void make_command(const Command& command, std::size_t sample_id, std::vector<std::byte>& into) {
  auto writer = start_command(command, into);
  writer.zeros(sample_id);
  writer.finish();
}

bool make_command_like(const Record& like, const Command& command, std::vector<std::byte>& into) {
  const auto size = size_without_sample_id(like);
  if (!size) {
    return false;
  }
  auto writer = start_command(command, into);
  writer.append(like.bytes.subspan(*size));
  if (into.size() > kMostRecord) {
    return false;
  }
  writer.finish();
  return true;
}

namespace {

std::uint16_t misc_of(const Sample& sample) {
  constexpr unsigned kMode = PERF_RECORD_MISC_CPUMODE_MASK;
  return sample.replaced_ip
             ? static_cast<std::uint16_t>((sample.misc & ~kMode) | PERF_RECORD_MISC_USER)
             : sample.misc;
}

// FIELDS: those of the sample, behind its header.
void replace_ip(const Sample& sample, std::span<std::byte> fields) {
  const std::size_t at = sample.event->samples(PERF_SAMPLE_IDENTIFIER) ? kWord : 0;
  if (sample.replaced_ip && sample.event->samples(PERF_SAMPLE_IP) && fields.size() >= at + kWord) {
    std::ranges::copy(std::as_bytes(std::span{&*sample.replaced_ip, 1}),
                      fields.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

}  // namespace

bool make_sample(const Sample& sample, std::span<const std::uint64_t> chain,
                 std::vector<std::byte>& into, std::optional<std::uint64_t> period,
                 std::optional<std::uint64_t> cut_mark) {
  ByteWriter writer{into, PERF_RECORD_SAMPLE, misc_of(sample)};
  const auto begin = into.size();
  if (period) {
    const auto at = period_offset(sample.event->attr);
    const auto had = sample.event->samples(PERF_SAMPLE_PERIOD) ? kWord : 0;
    writer.append(sample.before_chain.first(at));
    writer.number(*period);
    writer.append(sample.before_chain.subspan(at + had));
  } else {
    writer.append(sample.before_chain);
  }
  replace_ip(sample, std::span{into}.subspan(begin));
  bool whole = true;
  if (sample.event->samples(PERF_SAMPLE_CALLCHAIN)) {
    const auto others = into.size() + kWord + sample.between.size() + sample.behind.size();
    const auto room = others > kMostRecord ? 0 : (kMostRecord - others) / kWord;
    whole = chain.size() <= room;
    const bool marks = !whole && cut_mark && room != 0;
    chain = chain.first(std::min(chain.size(), room - (marks ? 1 : 0)));
    writer.number(std::uint64_t{chain.size() + (marks ? 1 : 0)});
    writer.append(std::as_bytes(chain));
    if (marks) {
      writer.number(*cut_mark);
    }
  }
  writer.append(sample.between);
  writer.append(sample.behind);
  writer.finish();
  return whole;
}

}  // namespace pyinject::perfdata
