#include "perfdata/record.hpp"

#include "base/byte_cursor.hpp"
#include "perfdata/limits.hpp"

#include <algorithm>
#include <string_view>

#include <sys/mman.h>

namespace pyinject::perfdata {
using base::ByteCursor;

namespace {

ByteCursor payload(const Record& record) {
  ByteCursor cursor{record.bytes};
  cursor.take(sizeof(perf_event_header));
  return cursor;
}

// A string ends with a zero; padding and the sample id follow.
std::optional<std::string> text_at(Bytes bytes) {
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const auto end = text.find('\0');
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  return std::string{text.substr(0, end)};
}

void parse_file(ByteCursor& cursor, Mapping& mapping) {
  mapping.major = cursor.number<std::uint32_t>();
  mapping.minor = cursor.number<std::uint32_t>();
  mapping.inode = cursor.number<std::uint64_t>();
  mapping.generation = cursor.number<std::uint64_t>();
}

void parse_build_id(ByteCursor& cursor, Mapping& mapping) {
  const auto size = cursor.number<std::uint8_t>();
  cursor.take(3);
  const auto bytes = cursor.take(kMostBuildId);
  if (size > bytes.size()) {
    cursor.fail();
    return;
  }
  mapping.build_id.assign(bytes.begin(), bytes.begin() + size);
}

}  // namespace

std::optional<Mapping> parse_mapping(const Record& record) {
  if (record.type != PERF_RECORD_MMAP && record.type != PERF_RECORD_MMAP2) {
    return std::nullopt;
  }
  Mapping mapping;
  auto cursor = payload(record);
  mapping.pid = cursor.number<std::uint32_t>();
  mapping.tid = cursor.number<std::uint32_t>();
  mapping.start = cursor.number<std::uint64_t>();
  mapping.size = cursor.number<std::uint64_t>();
  mapping.page_offset = cursor.number<std::uint64_t>();
  if (record.type == PERF_RECORD_MMAP) {
    const bool data = (record.misc & PERF_RECORD_MISC_MMAP_DATA) != 0;
    mapping.protection = PROT_READ | (data ? 0U : unsigned{PROT_EXEC});
  } else {
    const bool has_build_id = (record.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0;
    has_build_id ? parse_build_id(cursor, mapping) : parse_file(cursor, mapping);
    mapping.protection = cursor.number<std::uint32_t>();
    mapping.flags = cursor.number<std::uint32_t>();
  }
  auto file = text_at(cursor.left());
  if (cursor.failed() || !file) {
    return std::nullopt;
  }
  mapping.file = std::move(*file);
  return mapping;
}

std::optional<Task> parse_task(const Record& record) {
  if (record.type != PERF_RECORD_FORK && record.type != PERF_RECORD_EXIT) {
    return std::nullopt;
  }
  Task task;
  auto cursor = payload(record);
  task.pid = cursor.number<std::uint32_t>();
  task.parent_pid = cursor.number<std::uint32_t>();
  task.tid = cursor.number<std::uint32_t>();
  task.parent_tid = cursor.number<std::uint32_t>();
  task.time = cursor.number<std::uint64_t>();
  return cursor.failed() ? std::nullopt : std::optional{task};
}

std::optional<Command> parse_command(const Record& record) {
  if (record.type != PERF_RECORD_COMM) {
    return std::nullopt;
  }
  Command command;
  auto cursor = payload(record);
  command.pid = cursor.number<std::uint32_t>();
  command.tid = cursor.number<std::uint32_t>();
  command.exec = (record.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
  auto name = text_at(cursor.left());
  if (cursor.failed() || !name) {
    return std::nullopt;
  }
  command.name = std::move(*name);
  return command;
}

std::optional<DeferredChain> parse_deferred_chain(const Record& record) {
  if (record.type != kCallchainDeferred) {
    return std::nullopt;
  }
  DeferredChain chain;
  auto cursor = payload(record);
  chain.cookie = cursor.number<std::uint64_t>();
  const auto count = cursor.number<std::uint64_t>();
  if (cursor.failed() || count > cursor.left().size() / kWord) {
    return std::nullopt;
  }
  chain.addresses.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto address = cursor.number<std::uint64_t>();
    if (address < PERF_CONTEXT_MAX) {
      chain.addresses.push_back(address);
    }
  }
  return chain;
}

}  // namespace pyinject::perfdata
