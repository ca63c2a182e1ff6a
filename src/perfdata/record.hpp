// Records of perf.data; parses those about tasks and mappings. The bytes are not trusted.
#pragma once

#include "perfdata/event.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace pyinject::perfdata {

// Types missing in Debian 12's <linux/perf_event.h>; 64 and above are perf's own (linux,
// tools/lib/perf/include/perf/event.h).
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
  // Of the file; zero if the record has a build id instead.
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;
  std::vector<std::byte> build_id{};
  // PROT_*. An MMAP record, which perf has not requested since 3.16, only distinguishes code from
  // data.
  std::uint32_t protection = 0;
  std::uint32_t flags = MAP_PRIVATE;  // MAP_*; an MMAP record has none
  std::string file;
};

// The user part of a thread's callchains (linux 6.19), recorded when the thread returned to user
// space. Until then, samples have kContextUserDeferred and the cookie in its place.
struct DeferredChain {
  std::uint64_t cookie = 0;
  std::vector<std::uint64_t> addresses;  // innermost first, without PERF_CONTEXT_* marks
};
inline constexpr std::uint64_t kContextUserDeferred = static_cast<std::uint64_t>(-640);

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

// Each returns nullopt for other record types and for damaged records.
[[nodiscard]] std::optional<Mapping> parse_mapping(const Record& record);  // MMAP, MMAP2
[[nodiscard]] std::optional<Task> parse_task(const Record& record);        // FORK, EXIT
[[nodiscard]] std::optional<Command> parse_command(const Record& record);  // COMM
[[nodiscard]] std::optional<DeferredChain> parse_deferred_chain(const Record& record);

}  // namespace pyinject::perfdata
