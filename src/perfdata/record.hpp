// Records of perf.data, and what those about tasks and mappings say. The bytes are not trusted.
#pragma once

#include "perfdata/event.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace pyinject::perfdata {

// Types that Debian 12's <linux/perf_event.h> does not have; 64 and above are perf's own
// (linux, tools/lib/perf/include/perf/event.h).
enum RecordType : std::uint32_t {
  kCallchainDeferred = 22,  // linux 6.19
  kFirstOfPerf = 64,
  kHeaderAttr = 64,
  kFinishedRound = 68,
  kAuxtraceInfo = 70,
  kAuxtrace = 71,
  kCompressed = 81,
  kFinishedInit = 82,
  kCompressed2 = 83,  // perf 6.16
};

struct Record {
  std::uint32_t type = 0;  // PERF_RECORD_*
  std::uint16_t misc = 0;  // PERF_RECORD_MISC_*
  Bytes bytes;             // the whole record with its header
};

struct Mapping {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t start = 0;
  std::uint64_t size = 0;
  std::uint64_t page_offset = 0;  // in the file, in bytes
  // Of the file; zero when the record carries a build id instead.
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;
  std::vector<std::byte> build_id{};
  // PROT_*. An MMAP record, which perf has not asked for since 3.16, tells only code from data.
  std::uint32_t protection = 0;
  std::uint32_t flags = MAP_PRIVATE;  // MAP_*; an MMAP record has none
  std::string file;
};

struct Task {
  std::uint32_t pid = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t parent_tid = 0;
  std::uint64_t time = 0;
};

struct Command {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  bool exec = false;  // by execve, not by prctl
  std::string name;
};

// Each: nullopt for another type and for a damaged record.
[[nodiscard]] std::optional<Mapping> parse_mapping(const Record& record);  // MMAP, MMAP2
[[nodiscard]] std::optional<Task> parse_task(const Record& record);        // FORK, EXIT
[[nodiscard]] std::optional<Command> parse_command(const Record& record);  // COMM

}  // namespace pyinject::perfdata
