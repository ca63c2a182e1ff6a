#include "cli/source_file.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/descriptors.hpp"
#include "procfs/stat.hpp"
#include "procfs/status.hpp"
#include "procfs/target_root.hpp"
#include "pyinject/base/error.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pyinject::cli {

namespace {

constexpr uid_t kNobody = 65534;
constexpr std::size_t kLargestSource = std::size_t{8} << 20U;

std::optional<std::time_t> time_of(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? std::optional{facts.st_mtime} : std::nullopt;
}

report::SourceFile unreadable(const std::string& path, const std::string& why) {
  return {.lines = {}, .note = fmt::format("{}: {}", base::printable(path), why)};
}

// Whose rights to read count, and where.
struct Rights {
  bool of_process = false;  // false: nobody's
  uid_t user = kNobody;
  gid_t group = kNobody;
  std::vector<gid_t> groups;
  std::optional<procfs::TargetRoot> root;
};

// Of the process that had PID at the time of the recording; if it has exited, nobody's.
Rights rights_of(base::Pid pid, std::optional<std::time_t> recorded) {
  timespec boot{};
  const auto stat = procfs::read_stat(pid);
  const auto status = procfs::read_status(pid);
  auto root = procfs::TargetRoot::open(pid);
  if (stat && status && root && recorded && ::clock_gettime(CLOCK_BOOTTIME, &boot) == 0) {
    const auto age =
        boot.tv_sec - static_cast<std::time_t>(stat->start_time /
                                               static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
    if (std::time(nullptr) - age <= *recorded + 1) {  // both are cut to seconds
      return {.of_process = true,
              .user = status->uids[3],
              .group = status->gids[3],
              .groups = status->groups,
              .root = std::move(root)};
    }
  }
  return {.groups = {}, .root = procfs::TargetRoot::open(base::Pid{::getpid()})};
}

// Gives RIGHTS to the calling thread, until its end: by system calls, since the C library's
// functions change all threads. False: a root without CAP_SETUID or CAP_SETGID.
bool take(const Rights& rights) {
  return ::syscall(SYS_setgroups, rights.groups.size(), rights.groups.data()) == 0 &&
         (::syscall(SYS_setfsgid, rights.group), ::syscall(SYS_setfsgid, -1)) == rights.group &&
         (::syscall(SYS_setfsuid, rights.user), ::syscall(SYS_setfsuid, -1)) == rights.user;
}

// Follows links beneath the root, and opens nothing but a regular file; errno says why not.
base::UniqueFd open_beneath(const procfs::TargetRoot& root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const base::UniqueFd place{
      static_cast<int>(::syscall(SYS_openat2, root.fd(), path.c_str(), &how, sizeof how))};
  struct stat facts {};
  if (!place.valid() || ::fstat(place.get(), &facts) != 0) {
    return {};
  }
  if (!S_ISREG(facts.st_mode)) {
    errno = EINVAL;
    return {};
  }
  return base::UniqueFd{::open(procfs::own_descriptor_path(place.get()).c_str(),
                               O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
}

base::UniqueFd open_as(const Rights& rights, const std::string& path) {
  base::UniqueFd file;
  int error = EPERM;
  if (::geteuid() == 0) {
    std::thread{[&] {
      if (take(rights)) {
        file = open_beneath(*rights.root, path);
        error = errno;
      }
    }}.join();
  } else {
    file = open_beneath(*rights.root, path);
    error = errno;
    struct stat facts {};
    if (file.valid() && (::fstat(file.get(), &facts) != 0 ||
                         ((facts.st_mode & S_IROTH) == 0 && facts.st_uid != rights.user))) {
      file.reset();
      error = EACCES;
    }
  }
  errno = error;
  return file;
}

// The recording names the file: it may be anything, and may be from another machine.
report::SourceFile read_source(const std::string& path, base::Pid pid,
                               std::optional<std::time_t> recorded) {
  if (!path.starts_with('/')) {
    return unreadable(path, "the source is not shown: its path is not absolute");
  }
  const auto rights = rights_of(pid, recorded);
  const auto file = rights.root ? open_as(rights, path) : base::UniqueFd{};
  if (!file.valid()) {
    return unreadable(
        path,
        errno == EACCES && !rights.of_process
            ? "the source is not shown: the process has exited, and not every user may read it"
        : errno == EACCES ? "the source is not shown: the user of the process may not read it"
                          : fmt::format("the source cannot be read: {}", base::errno_text(errno)));
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) {
    return unreadable(path, fmt::format("the source cannot be read: {}", base::errno_text(errno)));
  }
  if (facts.st_size > static_cast<off_t>(kLargestSource)) {
    return unreadable(path, "the source is not shown: it is larger than 8 MiB");
  }
  report::SourceFile source{.lines = {}, .changed = facts.st_mtime};
  const auto text = base::read_fd(file.get(), kLargestSource, path);
  for (const auto line : base::split(text, '\n')) {
    source.lines.emplace_back(line);
  }
  if (recorded && facts.st_mtime > *recorded) {
    source.note = fmt::format("{}: the source is newer than the recording: lines may not match",
                              base::printable(path));
  }
  return source;
}

}  // namespace

report::ReadSource source_reader(std::optional<std::time_t> recorded) {
  return [recorded](const std::string& path, std::uint32_t pid) {
    return read_source(path, base::Pid{static_cast<pid_t>(pid)}, recorded);
  };
}

report::ReadSource source_reader(const std::string& recording) {
  return source_reader(time_of(recording));
}

}  // namespace pyinject::cli
