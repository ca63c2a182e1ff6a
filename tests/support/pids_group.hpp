// A control group of the pids controller.
#pragma once

#include "pyinject/base/pid.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <unistd.h>

namespace pyinject::test {

// Of the version 1 hierarchy. Removed with this object, unless processes are in it.
class PidsGroup {
 public:
  PidsGroup() {
    std::error_code error;
    if (!std::filesystem::create_directory(path_, error)) {
      path_.clear();
    }
  }
  ~PidsGroup() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  PidsGroup(const PidsGroup&) = delete;
  PidsGroup& operator=(const PidsGroup&) = delete;

  // False: no such controller, or no right to use it.
  [[nodiscard]] bool valid() const { return !path_.empty(); }
  void add(base::Pid pid) const { std::ofstream{path_ + "/cgroup.procs"} << pid.value(); }
  // Moves PID to the root of the hierarchy.
  void release(base::Pid pid) const { std::ofstream{path_ + "/../cgroup.procs"} << pid.value(); }
  void allow_no_more() const { std::ofstream{path_ + "/pids.max"} << 0; }

 private:
  std::string path_ = fmt::format("/sys/fs/cgroup/pids/pyinject-test-{}", ::getpid());
};

}  // namespace pyinject::test
