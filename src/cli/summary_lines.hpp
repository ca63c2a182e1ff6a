// What a recording did, and found: lines for people.
#pragma once

#include "pyinject/record/record_observer.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace pyinject::cli {

// "37 us", "1.2 ms".
[[nodiscard]] std::string format_short(std::chrono::nanoseconds span);
// "pid 12: Python 3.14.0: trampoline on, stopped for 37 us"
[[nodiscard]] std::string activation_line(const targets::ActiveTarget& active);
// "pid 12: Python 3.14.0: attached read-only (BPF)"
[[nodiscard]] std::string observation_line(const python::Target& target);
// The result for one file. DONE: "recorded 2.0 s".
[[nodiscard]] std::vector<std::string> woven_lines(const record::WovenFile& file,
                                                   const std::string& done);
// The counters of --engine bpf, with the samples of other programs in STACKS.
[[nodiscard]] std::string sampler_line(const record::SamplerStats& stats,
                                       const perfdata::StackCounts& stacks = {});
// The same for the trampoline.
[[nodiscard]] std::string stacks_line(const perfdata::StackCounts& stacks);
// The lines at the end of a recording. PERF: the user's name for perf; empty: the caller reads the
// file and removes it, so the lines do not name it.
[[nodiscard]] std::vector<std::string> summary_lines(const record::RecordSummary& summary,
                                                     const std::string& perf);

// Of all its files.
[[nodiscard]] perfdata::StackCounts stack_counts(const record::RecordSummary& summary);

}  // namespace pyinject::cli
