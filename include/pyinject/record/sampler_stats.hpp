// What --engine bpf counts.
#pragma once

#include <chrono>
#include <cstdint>

namespace pyinject::session {

struct SamplerStats {
  std::uint64_t samples = 0;      // of Python processes, as the program in the kernel saw them
  std::uint64_t matched = 0;      // samples of the file that have their record
  std::uint64_t with_frames = 0;  // of them, those that ran Python
  std::uint64_t unmatched = 0;    // samples of Python processes that have none
  std::uint64_t not_joined = 0;   // of these: of before the program was attached, or after that
  // Samples of the file whose C functions could not be put between their Python functions, and
  // those of them whose copied part of the stack was too short.
  std::uint64_t python_only = 0;
  std::uint64_t python_only_cut = 0;
  std::uint64_t state_found = 0;              // the thread's state was where it had been
  std::uint64_t state_searched = 0;           // it was found in the interpreter's list
  std::uint64_t no_state = 0;                 // threads that CPython does not know
  std::uint64_t no_frames = 0;                // threads of CPython's that run no Python
  std::uint64_t truncated = 0;                // more than 512 frames
  std::uint64_t unreadable = 0;               // a part of the frames could not be read
  std::uint64_t gil_held = 0;                 // with --gil
  std::uint64_t gil_waited_for = 0;           // with --gil
  std::uint64_t lost = 0;                     // records that there was no room for
  std::uint64_t lost_names = 0;               // the same of names, or they cannot be read
  std::uint64_t by_clock = 0;                 // matched by the nearest time
  std::chrono::nanoseconds processor_time{};  // of the collector
};

}  // namespace pyinject::session
