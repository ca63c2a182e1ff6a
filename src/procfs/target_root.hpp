// The file system as a target sees it. The target's owner controls it: links, devices, FIFOs and
// mounts in it must not lead out of it, have side effects, or block. (A FUSE file system can still
// delay a reader: no kernel interface prevents that.)
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <optional>
#include <string>

#include <sys/stat.h>

namespace pyinject::procfs {

class TargetRoot {
 public:
  enum class Links {
    kInside,  // follows links in directories of a path; "/" and ".." stop at the root
    kNone,    // any link is ELOOP
  };

  // nullopt: errno says why. Stays valid if the process exits or its pid is reused.
  [[nodiscard]] static std::optional<TargetRoot> open(base::Pid pid);

  // The same for the directory PATH. Stays valid when the mount at PATH goes away, as at the end of
  // a mount namespace. nullopt: not a directory, errno says why.
  [[nodiscard]] std::optional<TargetRoot> folder(const std::string& path) const;

  // Opens PATH, relative to the root, with or without a leading slash; FLAGS as for open(2), plus
  // O_NONBLOCK, O_NOCTTY, O_NOFOLLOW and O_CLOEXEC. Without O_CREAT: opens only regular files, or
  // directories with O_DIRECTORY, on file systems that hold data; anything else is EINVAL and is
  // not opened. O_CREAT needs O_EXCL (else EINVAL): existing files are never written. A link as the
  // last part is ELOOP. On failure the result is not valid() and errno says why.
  [[nodiscard]] base::UniqueFd open_beneath(const std::string& path, int flags,
                                            Links links = Links::kInside, mode_t mode = 0600) const;

  // An O_PATH descriptor for PATH, or for the link at PATH: opens nothing.
  [[nodiscard]] base::UniqueFd locate(const std::string& path, Links links = Links::kInside) const;

  // The file, or the link, at PATH. nullopt: errno says why.
  [[nodiscard]] std::optional<struct stat> stat_beneath(const std::string& path,
                                                        Links links = Links::kInside) const;

  // O_PATH, for other *at functions.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit TargetRoot(base::UniqueFd fd) : fd_{std::move(fd)} {}

  [[nodiscard]] base::UniqueFd resolve(const std::string& path, int flags, mode_t mode,
                                       Links links) const;

  base::UniqueFd fd_;
};

}  // namespace pyinject::procfs
