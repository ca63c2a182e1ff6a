// Copies the perf maps of targets to the place where perf looks for them.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/perf/map_collector.hpp"
#include "pyinject/targets/manager.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pyinject::targets {

class MapCopies {
 public:
  // PREFIX: for messages, such as "guard: ".
  MapCopies(perf::MapCollectorOptions options, base::Logger& logger, std::string prefix = {})
      : options_{std::move(options)}, logger_{logger}, prefix_{std::move(prefix)} {}

  // Copies MAP, the open perf map of PID; no-op if it is not valid. Failures and truncations are
  // logged as warnings.
  void collect(const base::UniqueFd& map, base::Pid pid);
  void collect(const ActiveTarget& active) { collect(active.activation.map, active.target.id.pid); }
  // The copies made so far.
  [[nodiscard]] const std::vector<perf::CollectedMap>& collected() const { return collected_; }

 private:
  perf::MapCollectorOptions options_;
  base::Logger& logger_;
  std::string prefix_;
  std::vector<perf::CollectedMap> collected_;
};

// The map of PID, open for reading: through the descriptor of an active target, else the file that
// perf would find. Not valid: there is none. Does not throw.
[[nodiscard]] base::UniqueFd open_map(const Manager& manager, std::uint32_t pid);

}  // namespace pyinject::targets
