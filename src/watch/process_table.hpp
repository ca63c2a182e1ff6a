// The processes as they were when they were last looked at, and what has changed since.
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

// What /proc/PID/stat says of one.
struct Seen {
  std::uint64_t start_time = 0;
  base::Pid parent;
  // Where exec put its stack and environment: another place for each program image. Zero for who
  // may not trace it.
  std::tuple<std::uint64_t, std::uint64_t, std::uint64_t> image;
  std::string name;
  bool ended = false;  // a zombie
};

class ProcessTable {
 public:
  // nullopt: it has gone.
  using Look = std::function<std::optional<Seen>(base::Pid)>;

  // PRESENT, in ascending order, are all that there are. New ones are looked at; then those that
  // are new since recently, then some of the others, each of them once in kRound calls.
  std::vector<ProcessEvent> update(const std::vector<base::Pid>& present, const Look& look);
  [[nodiscard]] std::size_t size() const { return known_.size(); }

  static constexpr unsigned kRound = 20;
  static constexpr std::size_t kMostYoung = 128;  // looked at in one call

 private:
  struct Known {
    base::Pid pid;
    Seen seen;
    unsigned age = 0;  // calls
    // It is new, or has executed a program: the loader may have been at work at the last look.
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
