#include "python/examine/map_file_check.hpp"

#include "procfs/limits.hpp"
#include "procfs/own_rights.hpp"
#include "procfs/target_root.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <variant>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace pyinject::python {

namespace {

constexpr const char* kDirectory = "/tmp";

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Write permission by mode bits, for the ids with which CPython would open the file.
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

// The target's own /tmp; follows no link out of its root.
std::variant<base::UniqueFd, Refusal> open_directory(base::Pid pid) {
  auto root = procfs::TargetRoot::open(pid);
  if (!root) {
    return Refusal{
        .reason = Reason::kMapDirectory,
        .found = fmt::format("its root directory cannot be opened: {}", base::errno_text(errno)),
        .remedy = procfs::how_to_get(procfs::Capability::kSysPtrace)};
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
        .remedy = "CPython writes its perf map there: give the process a /tmp"};
  }
  return directory;
}

std::optional<Refusal> check_existing(const struct stat& info, const procfs::Status& status,
                                      const std::string& path) {
  if (!S_ISREG(info.st_mode)) {
    return Refusal{
        .reason = Reason::kMapNotRegular,
        .found = fmt::format("{} is {}", path,
                             S_ISLNK(info.st_mode) ? "a symbolic link" : "not a regular file"),
        .remedy = "remove it: CPython needs a regular file"};
  }
  if (info.st_uid != status.uids[3]) {
    return Refusal{.reason = Reason::kMapForeign,
                   .found = fmt::format("{} belongs to uid {}, the process runs as uid {}", path,
                                        info.st_uid, status.uids[3]),
                   .remedy = "if another process left it there, remove it"};
  }
  if (!may_write(info, status)) {
    return Refusal{.reason = Reason::kMapForeign,
                   .found = fmt::format("{} is not writable for the process", path),
                   .remedy = "if another process left it there, remove it"};
  }
  return std::nullopt;
}

// CPython ignores failures of its writes: then all time of a function goes to its caller.
std::optional<Refusal> check_room(base::Pid pid, const struct statvfs& file_system) {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20U;  // some 10,000 functions
  const std::uint64_t room = file_system.f_bavail * file_system.f_frsize;
  if (file_system.f_blocks != 0 && room < kLeast) {
    return Refusal{
        .reason = Reason::kMapDirectory,
        .found = fmt::format("its {} is full ({} kB left)", kDirectory, room / 1000),
        .remedy = "CPython writes its perf map there: make room, or record --engine bpf"};
  }
  const auto limits = procfs::read_limits(pid);
  const auto limit = limits ? limits->file_size : procfs::Limits::kUnlimited;
  // CPython ignores the signal, unless it is embedded or the program has changed that.
  constexpr auto kLarge = std::uint64_t{1} << 30U;  // some 10 million functions
  const bool ends_it = limit < kLarge && !procfs::ignores_signal(pid, SIGXFSZ);
  if (limit < kLeast || ends_it) {
    return Refusal{
        .reason = Reason::kResourceLimit,
        .found = fmt::format("its files may have {} bytes at most (RLIMIT_FSIZE){}", limit,
                             ends_it ? ", and it does not ignore the signal SIGXFSZ" : ""),
        .remedy = fmt::format("CPython writes its perf map: prlimit --pid {} --fsize=unlimited, "
                              "or record --engine bpf",
                              pid.value())};
  }
  return std::nullopt;
}

// Whether it was last written before a process with START_TIME started.
bool is_stale(const struct stat& info, std::uint64_t start_time) {
  timespec boot{};
  timespec now{};
  if (start_time == 0 || !S_ISREG(info.st_mode) || ::clock_gettime(CLOCK_BOOTTIME, &boot) != 0 ||
      ::clock_gettime(CLOCK_REALTIME, &now) != 0) {
    return false;
  }
  // The start is in clock ticks since boot, the file's time in wall clock time.
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double age = static_cast<double>(boot.tv_sec) - static_cast<double>(start_time) / ticks;
  const double started = static_cast<double>(now.tv_sec) - age;
  constexpr double kSlack = 2;  // seconds; file systems with coarse times, clock adjustments
  return static_cast<double>(info.st_mtim.tv_sec) + kSlack < started;
}

// Whether this tool may rename FILE in DIRECTORY. In a sticky directory, only its owner or
// CAP_FOWNER may.
bool may_move(const struct stat& file, const struct stat& directory) {
  constexpr std::uint64_t kFowner = std::uint64_t{1} << 3U;
  const auto self = procfs::read_status(base::Pid{::getpid()});
  return self && may_write(directory, *self) &&
         ((self->effective_capabilities & kFowner) != 0 || (directory.st_mode & S_ISVTX) == 0 ||
          file.st_uid == self->uids[3] || directory.st_uid == self->uids[3]);
}

}  // namespace

std::optional<Refusal> check_map_file(base::Pid pid, const procfs::Status& status,
                                      std::uint64_t start_time, const std::string& path) {
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
  if (auto refusal = check_room(pid, file_system)) {
    return refusal;
  }
  struct stat info {};
  struct stat around {};
  const bool known = ::fstat(directory.get(), &around) == 0;
  if (::fstatat(directory.get(), file_name(path).c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    const bool moved = known && is_stale(info, start_time) && may_move(info, around);
    return moved ? std::nullopt : check_existing(info, status, path);
  }
  if (known && !may_write(around, status)) {
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
  if (directory == nullptr ||
      ::fstatat(directory->get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
      !is_stale(info, start_time)) {
    return std::nullopt;
  }
  const auto old = name + ".old";
  if (::renameat(directory->get(), name.c_str(), directory->get(), old.c_str()) != 0) {
    return fmt::format(
        "{}, left by an earlier process with this pid, could not be moved away ({}): its names "
        "will mix with the names of this process; remove the file before the next recording",
        path, base::errno_text(errno));
  }
  return fmt::format("moved {}, left by an earlier process with this pid, to {}.old", path, path);
}

}  // namespace pyinject::python
