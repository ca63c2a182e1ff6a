// How many samples are missing because perf was too slow.
#pragma once

#include "perfdata/input.hpp"
#include "pyinject/weave/weave_summary.hpp"

#include <cstdint>

namespace pyinject::weave {

class Losses {
 public:
  // RECORD of INPUT is of either kind: PERF_RECORD_LOST, PERF_RECORD_LOST_SAMPLES.
  void learn(const perfdata::Input& input, const perfdata::Record& record);
  // Once all are known: samples that are missing. It can count other records, too, where the
  // samples' own number is unknown.
  [[nodiscard]] std::uint64_t samples(const perfdata::Input& input) const;
  void summarize(const perfdata::Input& input, WeaveSummary& summary) const;

 private:
  std::uint64_t times_ = 0;
  std::uint64_t records_ = 0;  // of any kind, reported when there was room again
  std::uint64_t samples_ = 0;  // by the events' counters, which perf reads when it exits
};

}  // namespace pyinject::weave
