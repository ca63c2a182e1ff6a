// Remembers whether files hold a CPython. Queried for each file that any process maps: a known
// answer takes one look-up and no system call.
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/procfs/file_identity.hpp"
#include "python/examine/mapped_file.hpp"

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace pyinject::python {

class FileVerdicts {
 public:
  using Clock = std::chrono::steady_clock;

  // As Detector's known_verdict() and may_hold_interpreter().
  [[nodiscard]] std::optional<bool> known(const procfs::FileIdentity& file);
  [[nodiscard]] bool look(MappedFiles& files, base::Pid pid, const procfs::FileIdentity& file,
                          const std::string& path, const base::Cancellation& cancellation);

 private:
  struct Hash {
    std::size_t operator()(const procfs::FileIdentity& file) const;
  };
  struct Verdict {
    bool interpreter = false;
    Clock::time_point since;
  };

  std::mutex mutex_;
  std::unordered_map<procfs::FileIdentity, Verdict, Hash> known_;
};

}  // namespace pyinject::python
