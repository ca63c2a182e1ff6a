// The processes at the last scan, and what has changed since.
#pragma once

#include "pyinject/watch/process_watch.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace pyinject::watch {

// Facts from /proc/PID/stat.
struct Seen {
  std::uint64_t start_time = 0;
  base::Pid parent;
  // Where exec placed its stack and environment: differs between program images. Zero without
  // permission to trace.
  std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> image;
  std::string name;
  bool ended = false;  // a zombie
};

class ProcessTable {
 public:
  // nullopt: the process has exited.
  using Look = std::function<std::optional<Seen>(base::Pid)>;

  // PRESENT: all existing processes, in ascending order. Examines new ones first, then recent ones,
  // then some of the others, so that each is examined once in kRound calls.
  std::vector<ProcessEvent> update(const std::vector<base::Pid>& present, const Look& look);
  [[nodiscard]] std::size_t size() const { return known_.size(); }

  static constexpr unsigned kRound = 20;
  static constexpr std::size_t kMostYoung = 128;  // examined per call

 private:
  struct Known {
    base::Pid pid;
    Seen seen;
    unsigned age = 0;  // number of calls
    // It started or exec'ed: the loader may have been running at the last examination.
    bool appears_again = false;
  };

  void add(base::Pid pid, const Look& look, std::vector<Known>& now,
           std::vector<ProcessEvent>& events) const;
  void tell_old_from_new();
  void look_again(const Look& look, std::vector<ProcessEvent>& events);

  std::vector<Known> known_;  // by pid
  unsigned turn_ = 0;
};

}  // namespace pyinject::watch
