// The events of a recording, one for each thread and processor, and the rings of their records.
// perf_event_open(2). Without libperf, which tells neither descriptors nor ids, and gives up at the
// first thread that has exited since it was listed (docs/dependencies.md).
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "recorder/options.hpp"
#include "recorder/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace pyinject::recorder {

struct OpenEvent {
  std::string name;
  perf_event_attr attr{};
  std::vector<base::UniqueFd> fds;
  std::vector<std::uint64_t> ids;  // of FDS
  bool sampling = true;            // false: the side band
  bool enabled = false;
};

class OpenEvents {
 public:
  // A string says why not, as perf does (perf::explain_record_failure() knows the remedies).
  [[nodiscard]] static std::variant<OpenEvents, std::string> open(const Options& options);

  [[nodiscard]] std::vector<OpenEvent>& events() { return events_; }
  [[nodiscard]] const std::vector<OpenEvent>& events() const { return events_; }
  [[nodiscard]] std::vector<Ring>& rings() { return rings_; }
  // What the user should know, such as a frequency that the kernel does not allow.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

  // Enables or disables it on all threads and processors.
  static void set(OpenEvent& event, bool enabled);

 private:
  OpenEvents() = default;
  std::vector<OpenEvent> events_;
  std::vector<Ring> rings_;  // one for each processor
  std::vector<std::string> notes_;
};

}  // namespace pyinject::recorder
