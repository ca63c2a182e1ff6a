#include "targets/map_copies.hpp"

#include "base/format.hpp"
#include "procfs/reopen.hpp"
#include "targets/target_map.hpp"

#include <exception>

#include <fcntl.h>

namespace pyinject::targets {

void MapCopies::collect(const base::UniqueFd& map, base::Pid pid) {
  if (!map.valid()) {
    return;
  }
  try {
    collected_.push_back(perf::collect_map(map.get(), pid, options_));
    if (collected_.back().cut_short) {
      logger_.warning("{}pid {}: its perf map is longer than {} MiB: the rest was not copied",
                      prefix_, pid.value(), options_.most_bytes >> 20U);
    }
  } catch (const std::exception& error) {
    logger_.warning("{}{}; its Python functions may have no names", prefix_, error.what());
  }
}

base::UniqueFd open_map(const Manager& manager, std::uint32_t pid) {
  for (const auto& active : manager.active()) {
    const auto& map = active->activation.map;
    if (static_cast<std::uint32_t>(active->target.id.pid.value()) == pid && map.valid()) {
      return procfs::reopen(map, O_RDONLY | O_CLOEXEC);
    }
  }
  return open_perf_map(pid);
}

}  // namespace pyinject::targets
