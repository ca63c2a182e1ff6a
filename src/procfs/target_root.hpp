// The file system as a target sees it. Whoever owns the target owns it, too: links, devices, FIFOs
// and mounts in there must not lead out, do anything, or block. (A FUSE file system can still keep
// a reader waiting: nothing in the kernel's interface prevents that.)
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
    kInside,  // links in the folders of a path are followed, and "/" and ".." end at the root
    kNone,    // a link anywhere is ELOOP
  };

  // nullopt: errno says why. It stays that root when the process ends or its pid is reused.
  [[nodiscard]] static std::optional<TargetRoot> open(base::Pid pid);

  // The same for what is beneath the folder PATH. It stays when what is mounted there is no longer,
  // as at the end of a mount namespace. nullopt: it is none, errno says why.
  [[nodiscard]] std::optional<TargetRoot> folder(const std::string& path) const;

  // PATH from the root on, with or without a leading slash; FLAGS as of open(2), to which
  // O_NONBLOCK, O_NOCTTY, O_NOFOLLOW and O_CLOEXEC are added. Without O_CREAT: regular files, with
  // O_DIRECTORY folders, of file systems that hold data; anything else is EINVAL without having
  // been opened. O_CREAT needs O_EXCL
  // (else EINVAL): what is there is never written. A link as the last part is ELOOP. On failure the
  // result is not valid() and errno says why.
  [[nodiscard]] base::UniqueFd open_beneath(const std::string& path, int flags,
                                            Links links = Links::kInside, mode_t mode = 0600) const;

  // An O_PATH descriptor of what is at PATH, a link itself when it is one: nothing is opened.
  [[nodiscard]] base::UniqueFd locate(const std::string& path, Links links = Links::kInside) const;

  // What is at PATH, a link itself when it is one. nullopt: errno says why.
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
