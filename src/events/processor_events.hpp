// Events of this process on all processors and for all processes, and the rings of their records,
// through libperf: without a perf and without a file. perf_event_open(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <linux/perf_event.h>

namespace pyinject::events {

// Whether this build includes libperf.
[[nodiscard]] bool built_in();

// Bytes for the records of one processor: powers of two, at least a page; 0: none, nobody reads
// them. Without CAP_IPC_LOCK, kernel.perf_event_mlock_kb limits them, 516 by default: then LARGEST
// is halved, down to SMALLEST.
struct RingSize {
  std::size_t largest = 0;
  std::size_t smallest = 0;
};

// An event on each processor. Closes all of it at its end.
class ProcessorEvents {
 public:
  // Opens an event with ATTRIBUTES, and a ring, for each processor that is online. Needs
  // CAP_PERFMON or kernel.perf_event_paranoid < 1. A string says why not, with the remedy.
  [[nodiscard]] static std::variant<ProcessorEvents, std::string> open(perf_event_attr attributes,
                                                                       RingSize size);

  void enable();
  void disable();

  // One for each ring: becomes ready with new records, as the attributes say, and only once until
  // the next ones. They live as long as this object. Empty: this libperf is unknown.
  [[nodiscard]] std::vector<int> fds() const;

  using Take = std::function<void(std::span<const std::byte>)>;
  // Passes each record on that was written since the last call, complete and with its header, for
  // each processor in order of time; not to be trusted. Calls FULL, if there is one, after the
  // records of a ring that can have been full: the kernel reports lost records (PERF_RECORD_LOST)
  // with the next one that fits, which may never come. False: there were no records.
  bool read(const Take& take, const std::function<void()>& full = {});

 private:
  struct Libperf;
  struct Delete {
    void operator()(Libperf* libperf) const;
  };
  explicit ProcessorEvents(Libperf* libperf) : libperf_{libperf} {}
  std::unique_ptr<Libperf, Delete> libperf_;
};

}  // namespace pyinject::events
