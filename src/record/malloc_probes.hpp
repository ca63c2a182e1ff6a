// Uprobes on the memory allocator of running processes, as events for perf: on its functions
// (--what malloc), or at its own static probes (--what memory).
#pragma once

#include "elf/elf_file.hpp"
#include "elf/usdt.hpp"
#include "perf/uprobe_events.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::record {

// A place in a file for a uprobe event.
struct ProbePlace {
  std::string name;                  // of the event
  std::uint64_t offset = 0;          // in the file
  std::uint64_t counter_offset = 0;  // of its semaphore in the file; 0: none
  std::string arguments = {};        // what to fetch
};

// What an allocator that samples itself tells, or why it cannot be used. Both empty: it tells
// nothing.
struct AllocatorPlaces {
  std::vector<ProbePlace> places;
  std::string lack;
};
// The static probes of a file with PROBES and SEGMENTS that tell allocated and freed blocks:
// otel_memory:alloc(address, size, weight) and otel_memory:free(address)
// (open-telemetry/opentelemetry-ebpf-profiler, design-docs/00003-memory-profiling), or the same of
// the provider ddheap, which came before. The events are heap_alloc and heap_free. Pure.
[[nodiscard]] AllocatorPlaces allocator_places(const std::vector<elf::UsdtProbe>& probes,
                                               std::span<const elf::Segment> segments);

class MallocProbes {
 public:
  // Probes on malloc, calloc and realloc in each file that PIDS have mapped and that defines them:
  // the C library, another allocator, or a statically linked executable. Returns a string that says
  // why not, with the remedy. Throws base::Error if the kernel rejects an event. Removes what
  // killed sessions left in tracefs. A probe costs nothing until perf opens it. Once CANCELLATION
  // is stopped, returns what there is.
  [[nodiscard]] static std::variant<MallocProbes, std::string> of(
      std::span<const base::Pid> pids, const base::Cancellation& cancellation,
      base::Logger& logger);
  // Likewise at allocator_places(). nullopt: no allocator tells, or the probes cannot be placed,
  // which a warning says. Throws nothing of the kernel's.
  [[nodiscard]] static std::optional<MallocProbes> that_tell(std::span<const base::Pid> pids,
                                                             const base::Cancellation& cancellation,
                                                             base::Logger& logger);

  // As for perf record -e.
  [[nodiscard]] const std::vector<std::string>& events() const { return events_.events(); }
  // The paths of the files, as the processes see them.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

  // Removes the events; warns about those that another process still has open. The destructor
  // removes them, too.
  void remove(base::Logger& logger);

 private:
  explicit MallocProbes(perf::UprobeEvents events) : events_{std::move(events)} {}
  void add(int file, const std::string& path, const std::vector<ProbePlace>& places);
  static std::variant<MallocProbes, std::string> open(base::Logger& logger);

  perf::UprobeEvents events_;
  std::map<std::string, std::size_t> names_;  // of events: how many have it
  std::vector<std::string> files_;
};

}  // namespace pyinject::record
