// Reads a perf.data file into a profile: names every frame as perf does.
//
// For example:
//   const auto read = report::read_profile("perf.data");
//   if (const auto* const found = std::get_if<report::Profile>(&read)) {
//     std::cout << found->samples.size() << " samples\n";
//   }
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "pyinject/perfdata/unsupported_file.hpp"
#include "pyinject/report/profile.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

namespace pyinject::report {

struct ReadOptions {
  // Opens the perf map of a process by its pid: names of code that no file has. Not valid: none.
  std::function<base::UniqueFd(std::uint32_t)> open_perf_map = {};
  // Called with the part that is done, 0 to 1, from time to time. False: stop, which leaves the
  // rest out.
  std::function<bool(double)> progress = {};
};

// FILE was written by this tool or by perf, by `perf record` or `weave`. The samples are those of
// all its events, in order of time. Memory: some 40 bytes for each sample and each entry of its
// distinct callchains. Throws base::Error if the file cannot be opened or read.
[[nodiscard]] std::variant<Profile, perfdata::UnsupportedFile> read_profile(
    const std::string& file, const ReadOptions& options = {});

}  // namespace pyinject::report
