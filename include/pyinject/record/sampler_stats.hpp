// Counters of --engine bpf.
//
// For example:
//   record::RecordSummary summary;
//   if (summary.sampler && summary.sampler->lost != 0) {
//     std::cerr << summary.sampler->lost << " records were lost: use a lower -F\n";
//   }
#pragma once

#include "pyinject/session_names.hpp"

#include <chrono>
#include <cstdint>

namespace pyinject::record {

struct SamplerStats {
  std::uint64_t samples = 0;      // in Python processes, as counted by the BPF program
  std::uint64_t matched = 0;      // samples of the file that have a BPF record
  std::uint64_t with_frames = 0;  // of these: samples with Python frames
  std::uint64_t unmatched = 0;    // samples of Python processes without a BPF record
  std::uint64_t not_joined = 0;   // of these: taken while the program was not attached
  // Samples of the file whose C functions could not be interleaved with their Python functions, and
  // those of them with a stack dump that was too short.
  std::uint64_t python_only = 0;
  std::uint64_t python_only_cut = 0;
  std::uint64_t state_found = 0;     // the thread state was at its last known address
  std::uint64_t state_searched = 0;  // it was found in the interpreter's list
  std::uint64_t no_state = 0;        // of MATCHED: threads unknown to CPython
  std::uint64_t no_frames = 0;       // the same: threads known to CPython that run no Python
  std::uint64_t truncated = 0;       // more than 512 frames
  std::uint64_t unreadable = 0;      // a part of the frames could not be read
  std::uint64_t gil_held = 0;        // with --gil
  std::uint64_t gil_waited_for = 0;  // with --gil
  std::uint64_t lost = 0;            // records dropped because the buffer was full
  std::uint64_t lost_names = 0;      // names dropped because the buffer was full, or unreadable
  std::uint64_t by_clock = 0;        // matched by the nearest timestamp
  std::uint64_t traced = 0;          // at tracepoints and probes, whether perf made a sample or not
  std::chrono::nanoseconds processor_time{};  // of the collector
};

}  // namespace pyinject::record
