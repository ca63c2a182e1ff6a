// The unwind tables of recorded processes, in the maps of the BPF program (sampler_native.bpf.h).
#pragma once

#include "base/budget.hpp"
#include "bpf/sampler_native.h"
#include "bpf/table_memory.hpp"
#include "elf/elf_file.hpp"
#include "elf/unwind_table.hpp"
#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace pyinject::bpf {

// Thread-safe. All processes share the table of a file. What a process makes this tool keep is
// limited: beyond that, its native stacks end earlier.
class NativeTables {
 public:
  // Descriptors of maps, which must outlive this object.
  struct Maps {
    int segments = -1;
    int rules = -1;
    int natives = -1;
  };
  explicit NativeTables(const Maps& maps);
  NativeTables(const NativeTables&) = delete;
  NativeTables& operator=(const NativeTables&) = delete;

  // Reads the mappings of PID and compiles the tables of files that are new; from now on, its
  // samples have native stacks. Call it again when the mappings have changed. False: nothing has.
  bool scan(base::Pid pid);
  // The BPF program has given CHILD the tables of PARENT at the fork.
  void forked(base::Pid parent, base::Pid child);
  // PID has exited.
  void forget(base::Pid pid);
  [[nodiscard]] bool knows(base::Pid pid) const;

 private:
  using Place = TableSegments::Place;
  // A part of a table within one segment.
  struct Piece {
    std::uint64_t begin = 0;  // address in the file
    std::uint64_t end = 0;
    std::uint32_t chunks = 0;
    Place place;
  };
  struct File {
    std::vector<elf::Segment> segments;
    std::vector<Piece> pieces;  // ascending; empty: no table
    bool refused = false;       // its table exceeded the budget of the process that mapped it
  };
  using FileKey = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::int64_t>;
  // The mappings of one or more processes.
  struct Range {
    std::vector<native_mapping> mappings;
    std::vector<std::shared_ptr<File>> files;
    Place place;
    std::size_t capacity = 0;
    std::uint32_t epoch = 0;
    base::Budget::Spender spender = 0;
    std::size_t hash = 0;  // of MAPPINGS
  };
  struct Retired {
    Place place;
    std::size_t capacity = 0;
    std::chrono::steady_clock::time_point since;
  };

  [[nodiscard]] std::shared_ptr<File> file_of(base::Pid pid, const procfs::Mapping& mapping);
  [[nodiscard]] std::shared_ptr<File> compile(base::UniqueFd descriptor,
                                              base::Budget::Spender spender);
  [[nodiscard]] bool place_table(const elf::UnwindTable& table, File& file);
  [[nodiscard]] std::shared_ptr<Range> place_range(std::vector<native_mapping> mappings,
                                                   std::vector<std::shared_ptr<File>> files,
                                                   base::Budget::Spender spender);
  // That of a process with equal MAPPINGS, whose hash is HASH; nullptr: none.
  [[nodiscard]] std::shared_ptr<Range> range_like(const std::vector<native_mapping>& mappings,
                                                  std::size_t hash) const;
  [[nodiscard]] std::optional<Place> allocate_range(std::size_t capacity);
  void publish(base::Pid pid, const Range* range) const;
  void release(base::Pid pid);

  const Maps maps_;
  mutable std::mutex mutex_;  // protects all below
  base::Budget bytes_;
  base::Budget steps_;
  base::Budget rule_budget_;
  TableRules rules_{maps_.rules};
  TableSegments segments_{maps_.segments};
  std::map<FileKey, std::weak_ptr<File>> files_;
  std::vector<std::shared_ptr<File>> kept_;  // for the processes that map them next
  std::shared_ptr<File> vdso_;
  std::unordered_map<std::uint32_t, std::shared_ptr<Range>> ranges_;    // by pid
  std::unordered_multimap<std::size_t, std::weak_ptr<Range>> by_hash_;  // the same ranges
  std::deque<Retired> retired_;
  std::uint32_t epoch_ = 0;
};

// The trampolines at the start of executable memory without unwind tables, from its first BYTES:
// the fields of a native_mapping except begin and end. nullopt: other code. Pure.
[[nodiscard]] std::optional<native_mapping> recognise_trampolines(std::span<const std::byte> bytes);

}  // namespace pyinject::bpf
