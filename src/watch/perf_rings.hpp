// Reads perf's side-band records from all processors, through libperf.
#pragma once

#include "side_band.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace pyinject::watch {

class PerfRings {
 public:
  // Whether this build includes libperf.
  [[nodiscard]] static bool built_in();
  // PAGES (a power of two) of buffer per processor. Null: WHY says why.
  [[nodiscard]] static std::unique_ptr<PerfRings> open(std::size_t pages, std::string& why);
  ~PerfRings();
  PerfRings(const PerfRings&) = delete;
  PerfRings& operator=(const PerfRings&) = delete;

  // One per processor online at the start; becomes ready with each new record, until polled.
  [[nodiscard]] const std::vector<int>& fds() const;

  // Appends the records written since the last call. False: there were none.
  bool read(std::vector<SideBand>& all);

 private:
  struct Libperf;
  explicit PerfRings(std::unique_ptr<Libperf> libperf);
  std::unique_ptr<Libperf> libperf_;
};

}  // namespace pyinject::watch
