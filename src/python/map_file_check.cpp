#include "map_file_check.hpp"

#include "pyinject/base/error.hpp"
#include "pyinject/base/file.hpp"
#include "pyinject/base/text.hpp"
#include "pyinject/procfs/reopen.hpp"
#include "pyinject/procfs/target_root.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <variant>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::python {

namespace {

constexpr const char* kDirectory = "/tmp";

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Write permission by the classic mode bits, for the ids that CPython would open files with.
bool may_write(const struct stat& info, const procfs::Status& status) {
  constexpr uid_t kRoot = 0;
  constexpr std::uint64_t kDacOverride = std::uint64_t{1} << 1U;  // CAP_DAC_OVERRIDE
  const uid_t user = status.uids[3];
  if (user == kRoot || (status.effective_capabilities & kDacOverride) != 0) {
    return true;
  }
  if (info.st_uid == user) {
    return (info.st_mode & S_IWUSR) != 0;
  }
  const bool member =
      info.st_gid == status.gids[3] ||
      std::find(status.groups.begin(), status.groups.end(), info.st_gid) != status.groups.end();
  return (info.st_mode & (member ? S_IWGRP : S_IWOTH)) != 0;
}

// The target's own /tmp, found without following any link out of its root.
std::variant<base::UniqueFd, Refusal> open_directory(base::Pid pid) {
  auto root = procfs::TargetRoot::open(pid);
  if (!root) {
    return Refusal{
        .reason = Reason::kMapDirectory,
        .found = fmt::format("its root folder cannot be opened: {}", base::errno_text(errno)),
        .remedy = "run as root or grant CAP_SYS_PTRACE"};
  }
  base::UniqueFd directory = root->locate(kDirectory);
  struct stat found {};
  if (directory.valid() && ::fstat(directory.get(), &found) == 0 && !S_ISDIR(found.st_mode)) {
    directory.reset();
    errno = S_ISLNK(found.st_mode) ? ELOOP : ENOTDIR;
  }
  if (!directory.valid()) {
    return Refusal{
        .reason = Reason::kMapDirectory,
        .found = fmt::format("its {} cannot be opened: {}", kDirectory, base::errno_text(errno)),
        .remedy = "CPython writes its perf map there: give it a /tmp"};
  }
  return directory;
}

std::optional<Refusal> check_existing(const struct stat& info, const procfs::Status& status,
                                      const std::string& path) {
  if (!S_ISREG(info.st_mode)) {
    return Refusal{
        .reason = Reason::kMapNotRegular,
        .found = fmt::format("{} is {}", path,
                             S_ISLNK(info.st_mode) ? "a symbolic link" : "no regular file"),
        .remedy = "CPython does not write through it: remove it"};
  }
  if (info.st_uid != status.uids[3]) {
    return Refusal{.reason = Reason::kMapForeign,
                   .found = fmt::format("{} belongs to uid {}, the process runs as uid {}", path,
                                        info.st_uid, status.uids[3]),
                   .remedy = "remove it, if it is a left-over of another process"};
  }
  if (!may_write(info, status)) {
    return Refusal{.reason = Reason::kMapForeign,
                   .found = fmt::format("{} is not writable for the process", path),
                   .remedy = "remove it, if it is a left-over of another process"};
  }
  return std::nullopt;
}

// LINK, of a descriptor. The kernel shows the path as seen from our root: for a chroot it begins
// with that root.
bool is_named(const std::optional<std::string>& link, std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::string_view text = link ? *link : std::string_view{};
  if (text.ends_with(kDeleted)) {
    text.remove_suffix(kDeleted.size());
  }
  return text.ends_with(path);
}

// Descriptor NUMBER of PID, to be reopened. A process can have one of a file that it may not read
// (O_PATH), under any name (bind mounts). So it must be open for writing, as CPython has its map;
// not valid() if it is anything else. It is looked at only when it is ours: the target may put
// another one in its place at any moment.
base::UniqueFd shown_by_target(base::Pid pid, const base::UniqueFd& process, int number,
                               std::string_view path) {
  struct stat info {};
  base::UniqueFd fd{static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0))};
  if (fd.valid()) {
    const int flags = ::fcntl(fd.get(), F_GETFL);
    const int access = flags & O_ACCMODE;
    const bool written = flags >= 0 && (flags & O_PATH) == 0 && access != O_RDONLY;
    const bool map = written && ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                     is_named(base::read_link(fmt::format("/proc/self/fd/{}", fd.get())), path);
    return map ? std::move(fd) : base::UniqueFd{};
  }
  // Where a seccomp filter of our own forbids that (containers): what the target owns, it may read.
  const auto status = procfs::read_status(pid);
  fd.reset(::open(fmt::format("/proc/{}/fd/{}", pid.value(), number).c_str(), O_PATH | O_CLOEXEC));
  const bool own = status && fd.valid() && ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                   info.st_uid == status->uids[3];
  return own ? std::move(fd) : base::UniqueFd{};
}

}  // namespace

std::optional<Refusal> check_map_file(base::Pid pid, const procfs::Status& status,
                                      const std::string& path) {
  auto opened = open_directory(pid);
  if (auto* refusal = std::get_if<Refusal>(&opened)) {
    return std::move(*refusal);
  }
  const auto& directory = std::get<base::UniqueFd>(opened);
  struct statvfs file_system {};
  if (::fstatvfs(directory.get(), &file_system) == 0 && (file_system.f_flag & ST_RDONLY) != 0) {
    return Refusal{.reason = Reason::kMapDirectory,
                   .found = fmt::format("its {} is read-only", kDirectory),
                   .remedy = "CPython writes its perf map there: mount a tmpfs on it"};
  }
  struct stat info {};
  if (::fstatat(directory.get(), file_name(path).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    return check_existing(info, status, path);
  }
  if (::fstat(directory.get(), &info) == 0 && !may_write(info, status)) {
    return Refusal{
        .reason = Reason::kMapDirectory,
        .found = fmt::format("its {} is not writable for uid {}", kDirectory, status.uids[3]),
        .remedy = "CPython writes its perf map there: chmod 1777 it"};
  }
  return std::nullopt;
}

std::optional<std::string> move_stale_map(base::Pid pid, std::uint64_t start_time,
                                          const std::string& path) {
  auto opened = open_directory(pid);
  const auto* directory = std::get_if<base::UniqueFd>(&opened);
  const auto name = file_name(path);
  struct stat info {};
  timespec boot{};
  timespec now{};
  if (directory == nullptr ||
      ::fstatat(directory->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(info.st_mode) || ::clock_gettime(CLOCK_BOOTTIME, &boot) != 0 ||
      ::clock_gettime(CLOCK_REALTIME, &now) != 0) {
    return std::nullopt;
  }
  // The start is counted in clock ticks since boot, the file's time is the wall clock's.
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double age = static_cast<double>(boot.tv_sec) - static_cast<double>(start_time) / ticks;
  const double started = static_cast<double>(now.tv_sec) - age;
  constexpr double kSlack = 2;  // seconds; file systems with coarse times, clock adjustments
  if (static_cast<double>(info.st_mtim.tv_sec) + kSlack >= started) {
    return std::nullopt;
  }
  const auto old = name + ".old";
  if (::renameat(directory->get(), name.c_str(), directory->get(), old.c_str()) != 0) {
    return std::nullopt;
  }
  return fmt::format("moved {} of an earlier process with that pid to {}.old", path, path);
}

OpenMap open_map_of(base::Pid pid, const std::string& path) {
  const auto folder = fmt::format("/proc/{}/fd", pid.value());
  const base::UniqueFd process{static_cast<int>(::syscall(SYS_pidfd_open, pid.value(), 0))};
  DIR* const listing = ::opendir(folder.c_str());
  OpenMap map;
  if (listing == nullptr) {
    return map;
  }
  while (const dirent* entry = ::readdir(listing)) {
    const auto number = base::parse_number<int>(entry->d_name);
    if (!number || !is_named(base::read_link(fmt::format("{}/{}", folder, *number)), path)) {
      continue;
    }
    const auto shown = shown_by_target(pid, process, *number, path);
    if (!shown.valid()) {
      continue;
    }
    map.open = true;
    map.file = procfs::reopen(shown, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    map.problem = map.file.valid() ? 0 : errno;
    break;
  }
  ::closedir(listing);
  return map;
}

}  // namespace pyinject::python
