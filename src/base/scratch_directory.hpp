// A directory for temporary files, which does not outlive its process for long.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <string>

namespace pyinject::base {

// In $TMPDIR, else in /tmp, with mode 0700. Is removed with all that is in it; what a killed
// process left is removed by the next one of the user that makes one there. A lock shows that a
// process has it: locks end with their process, whatever pid namespace that is in (flock(2)).
class ScratchDirectory {
 public:
  // Its name is "perf-pyinject", PURPOSE and some random characters: "perf-pyinject-serve-a3XyZ1"
  // for
  // "-serve-". Throws base::SystemError.
  explicit ScratchDirectory(const std::string& purpose);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd lock_;
};

}  // namespace pyinject::base
