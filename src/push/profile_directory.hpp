// --push pprof-dir=DIR: each profile is a file.
#pragma once

#include "push/stores.hpp"
#include "pyinject/base/directory.hpp"

#include <chrono>
#include <string>

namespace pyinject::push {

class ProfileDirectory {
 public:
  // Makes the directory PATH if it does not exist. Throws base::Error for a link, and for one of
  // another user, or writable by others.
  explicit ProfileDirectory(const std::string& path);

  // Writes SERVICE.YYYYMMDDHHMMSS.ID.pb.gz, which appears when it is complete and on the disk.
  // Throws base::Error.
  void write(const Delivery& delivery, std::chrono::system_clock::time_point time) const;

 private:
  base::Directory directory_;
};

}  // namespace pyinject::push
