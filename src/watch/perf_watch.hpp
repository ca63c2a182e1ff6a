// The watch based on perf's side-band records, with a configurable buffer size.
#pragma once

#include "pyinject/watch/process_watch.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace pyinject::watch {

// 256 KiB: half a second at 500 forks and execs per second on one processor.
inline constexpr std::size_t kRingPages = 64;

[[nodiscard]] std::unique_ptr<ProcessWatch> watch_by_perf_events(std::string& why,
                                                                 std::size_t ring_pages);

}  // namespace pyinject::watch
