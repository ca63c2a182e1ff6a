// Of which files is it known that there is no CPython in them? Asked for each file that each
// process maps, so the answer is one look-up and no system call.
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/procfs/file_identity.hpp"
#include "python/mapped_file.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <unordered_map>

namespace pyinject::python {

class FileVerdicts {
 public:
  using Clock = std::chrono::steady_clock;

  // As Detector's.
  [[nodiscard]] bool may_hold_interpreter(MappedFiles& files, base::Pid pid,
                                          const procfs::FileIdentity& file,
                                          const std::string& path);

 private:
  struct Hash {
    std::size_t operator()(const procfs::FileIdentity& file) const;
  };
  struct Verdict {
    bool interpreter = false;
    Clock::time_point since;
  };

  std::unordered_map<procfs::FileIdentity, Verdict, Hash> known_;
};

}  // namespace pyinject::python
