// What the server counts, in Prometheus's text format.
#pragma once

#include "serve/profile_maker.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace pyinject::serve {

struct Metrics {
  std::map<Event, std::uint64_t> profiles{};
  std::map<std::string, std::uint64_t> failures{};  // of profiles that were begun, by reason
  std::map<std::string, std::uint64_t> refusals{};  // of requests, by reason
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;
  std::uint64_t targets = 0;  // processes in the latest profile
  std::uint64_t running = 0;  // profiles
  std::uint64_t connections = 0;
};

// Used by this process and by the children that have ended.
struct OwnUse {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
};

// https://github.com/prometheus/docs/blob/main/docs/instrumenting/exposition_formats.md
[[nodiscard]] std::string to_prometheus(const Metrics& metrics, const OwnUse& use);

}  // namespace pyinject::serve
