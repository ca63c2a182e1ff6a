#include "procfs/target_root.hpp"

#include "procfs/reopen.hpp"

#include <fmt/format.h>

#include <cerrno>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::procfs {

namespace {

base::UniqueFd fail(int code) {
  errno = code;
  return base::UniqueFd{};
}

}  // namespace

std::optional<TargetRoot> TargetRoot::open(base::Pid pid) {
  base::UniqueFd fd{
      ::open(fmt::format("/proc/{}/root", pid.value()).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!fd.valid()) {
    return std::nullopt;
  }
  return TargetRoot{std::move(fd)};
}

std::optional<TargetRoot> TargetRoot::folder(const std::string& path) const {
  base::UniqueFd fd = locate(path);
  struct stat found {};
  if (!fd.valid() || ::fstat(fd.get(), &found) != 0) {
    return std::nullopt;
  }
  if (!S_ISDIR(found.st_mode)) {
    errno = ENOTDIR;
    return std::nullopt;
  }
  return TargetRoot{std::move(fd)};
}

base::UniqueFd TargetRoot::resolve(const std::string& path, int flags, mode_t mode,
                                   Links links) const {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.mode = mode;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  if (links == Links::kNone) {
    how.resolve |= RESOLVE_NO_SYMLINKS;
  }
  // EAGAIN: ".." collided with a rename somewhere in the system, openat2(2). A hostile target can
  // rename forever.
  constexpr int kMostTries = 64;
  for (int i = 0; i < kMostTries; ++i) {
    const auto fd = ::syscall(SYS_openat2, fd_.get(), path.c_str(), &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) {
      return base::UniqueFd{static_cast<int>(fd)};
    }
  }
  return base::UniqueFd{};
}

base::UniqueFd TargetRoot::locate(const std::string& path, Links links) const {
  return resolve(path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, links);
}

base::UniqueFd TargetRoot::open_beneath(const std::string& path, int flags, Links links,
                                        mode_t mode) const {
  constexpr int kAlways = O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC;
  if ((flags & O_CREAT) != 0) {
    return (flags & O_EXCL) != 0 ? resolve(path, flags | kAlways, mode, links) : fail(EINVAL);
  }
  const base::UniqueFd located = locate(path, links);
  struct stat found {};
  if (!located.valid() || ::fstat(located.get(), &found) != 0) {
    return base::UniqueFd{};
  }
  if (S_ISLNK(found.st_mode)) {
    return fail(ELOOP);
  }
  const bool wanted = (flags & O_DIRECTORY) != 0 ? S_ISDIR(found.st_mode) : S_ISREG(found.st_mode);
  return wanted && holds_data(located) ? reopen(located, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                                       : fail(EINVAL);
}

std::optional<struct stat> TargetRoot::stat_beneath(const std::string& path, Links links) const {
  const base::UniqueFd located = locate(path, links);
  struct stat found {};
  if (!located.valid() || ::fstat(located.get(), &found) != 0) {
    return std::nullopt;
  }
  return found;
}

}  // namespace pyinject::procfs
