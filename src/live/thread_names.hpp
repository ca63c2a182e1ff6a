// Reads the names of the threads and processes that are sampled into a profile.
#pragma once

#include "live/profile.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/python/target.hpp"
#include "python/objects/thread_comms.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace pyinject::live {

class ThreadNames {
 public:
  // PROFILE must outlive it.
  explicit ThreadNames(Profile& profile) : profile_{profile} {}

  // Threads of TARGET can have names that only its program knows.
  void add(const python::Target& target);
  // It is not sampled any more.
  void remove(base::Pid pid) { comms_.erase(pid); }
  // It has exited or executed another program: what has the pid next has other names.
  void forget(base::Pid pid);
  // Names the thread of STACK and its process, unless that has been done.
  void name(const sample::Stack& stack);
  // Call it from time to time: threads change their names.
  void read_again();

 private:
  Profile& profile_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> named_;  // pid, tid
  std::map<base::Pid, python::ThreadComms> comms_;
  int reads_ = 0;
};

}  // namespace pyinject::live
