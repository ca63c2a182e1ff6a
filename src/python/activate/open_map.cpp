#include "python/activate/open_map.hpp"

#include "procfs/descriptors.hpp"
#include "procfs/reopen.hpp"
#include "procfs/status.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::python {

namespace {

using base::UniqueFd;

// LINK: target of a descriptor's link. The kernel shows the path as seen from our root: for a
// chrooted process it starts with the chroot directory.
bool is_named(const std::optional<std::string>& link, std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::string_view text = link ? *link : std::string_view{};
  if (text.ends_with(kDeleted)) {
    text.remove_suffix(kDeleted.size());
  }
  return text.ends_with(path);
}

// The descriptors of PID that may refer to PATH. Listing them needs its user id or
// CAP_DAC_READ_SEARCH; trying each number needs only CAP_SYS_PTRACE.
std::vector<int> candidates(base::Pid pid, const procfs::Status& status, std::string_view path) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 20U;  // as fs.nr_open
  std::vector<int> numbers;
  const auto open = procfs::list_descriptors(pid);
  if (!open) {
    const auto slots = errno == EACCES ? std::min(status.descriptor_slots, kMost) : 0;
    for (std::uint64_t i = 0; i < slots; ++i) {
      numbers.push_back(static_cast<int>(i));
    }
    return numbers;
  }
  for (const int number : *open) {
    if (is_named(procfs::read_descriptor_link(pid, number), path)) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

// Whether FD is the map. A process can have a descriptor of a file that it may not read (O_PATH),
// under any name (bind mounts). So FD must be open for writing, as CPython opens its map. Checked
// on our own copy: the target may replace its descriptor at any time.
bool is_map(int fd, std::string_view path) {
  struct stat info {};
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY &&
         ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
         is_named(procfs::read_own_descriptor_link(fd), path);
}

// Descriptor NUMBER of PID, for reopening; not valid() if it is not the map.
UniqueFd shown_by_target(base::Pid pid, const procfs::Status& status, const UniqueFd& process,
                         int number, std::string_view path) {
  UniqueFd fd{static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0))};
  if (fd.valid()) {
    return is_map(fd.get(), path) && procfs::holds_data(fd) ? std::move(fd) : UniqueFd{};
  }
  if (errno == EBADF) {
    return fd;
  }
  // If a seccomp filter of our own forbids pidfd_getfd (containers): the target may read what it
  // owns.
  struct stat info {};
  fd = procfs::open_descriptor(pid, number, O_PATH);
  const bool own = fd.valid() && ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                   info.st_uid == status.uids[3] && procfs::holds_data(fd);
  return own ? std::move(fd) : UniqueFd{};
}

}  // namespace

OpenMap open_map_of(base::Pid pid, const std::string& path) {
  OpenMap map;
  const UniqueFd process{static_cast<int>(::syscall(SYS_pidfd_open, pid.value(), 0))};
  const auto status = procfs::read_status(pid);
  if (!process.valid() || !status) {
    return map;
  }
  for (const int number : candidates(pid, *status, path)) {
    const auto shown = shown_by_target(pid, *status, process, number, path);
    if (shown.valid()) {
      map.open = true;
      map.file = procfs::reopen(shown, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
      map.problem = map.file.valid() ? 0 : errno;
      break;
    }
  }
  return map;
}

}  // namespace pyinject::python
