// Uprobes on the memory allocator of running processes, as events for perf (--what malloc).
#pragma once

#include "perf/uprobe_events.hpp"
#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::record {

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

  // As for perf record -e.
  [[nodiscard]] const std::vector<std::string>& events() const { return events_.events(); }
  // The paths of the files, as the processes see them.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }

  // Removes the events; warns about those that another process still has open. The destructor
  // removes them, too.
  void remove(base::Logger& logger);

 private:
  explicit MallocProbes(perf::UprobeEvents events) : events_{std::move(events)} {}
  void add(int file, const std::string& path,
           const std::vector<std::pair<std::string, std::uint64_t>>& functions);

  perf::UprobeEvents events_;
  std::vector<std::string> files_;
};

}  // namespace pyinject::record
