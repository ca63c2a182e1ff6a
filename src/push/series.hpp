// Parts of a recording that go to a store under one set of labels.
#pragma once

#include "push/labels.hpp"
#include "push/owners.hpp"
#include "pyinject/report/profile.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pyinject::push {

struct Series {
  Labels labels;
  report::Profile profile;
  std::size_t sets = 1;  // of labels that it stands for
};

// A process chooses its name and some labels, also for each of its children: without a limit, it
// would choose how much memory this takes, and what a store has to keep.
inline constexpr std::size_t kMostSeries = 64;

using LabelSource = std::function<Labels(const RecordedProcess& process)>;

// Processes with equal labels share a series: the workers of a service are one profile, in which
// the pid is a label of the samples. Adds python_version where the process's frames show it.
// PROFILE's processes without samples have no series. Of more than kMostSeries sets of labels, each
// user of the machine has an equal part, those with the most samples, and what other users leave
// free; the rest share one series with service_name="other".
[[nodiscard]] std::vector<Series> series_of(const report::Profile& profile,
                                            const LabelSource& labels, const LiveProcesses& live);

// "3.13" for ".../bin/python3.13" and ".../libpython3.13.so.1.0"; "": neither.
[[nodiscard]] std::string python_version_in(const std::string& path);

}  // namespace pyinject::push
