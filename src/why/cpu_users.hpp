// Which other programs have the CPUs during a recording, by the context switches of all CPUs.
#pragma once

#include "why/event_rings.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

namespace pyinject::why {

class CpuUsers {
 public:
  // Times are of CLOCK_MONOTONIC, in nanoseconds.
  void begin(std::uint64_t time) { begin_ = time; }
  // RECORD: of a process that is not the recorded one. Those that are no switches tell nothing.
  void add(const RingRecord& record);
  // Nanoseconds on a CPU until END, by the kernel's name of each process's main thread; "": of
  // those that had ended before their name was read. Without threads that no switch shows.
  [[nodiscard]] std::map<std::string, std::uint64_t> times(std::uint64_t end) const;

 private:
  struct User {
    std::uint32_t pid = 0;
    std::uint64_t since = 0;  // on a CPU; 0: it is not
    std::uint64_t time = 0;
  };
  std::uint64_t begin_ = 0;
  std::unordered_map<std::uint32_t, User> users_;         // by tid
  std::unordered_map<std::uint32_t, std::string> names_;  // by pid
};

}  // namespace pyinject::why
