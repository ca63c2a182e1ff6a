#include "pyinject/procfs/open_mapped.hpp"

#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace pyinject::procfs {

namespace {

using base::UniqueFd;

// PATH seen from the target's root. A link in there must not lead out to ours.
UniqueFd locate_beneath_root(base::Pid pid, const std::string& path) {
  const UniqueFd root{
      ::open(fmt::format("/proc/{}/root", pid.value()).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!root.valid()) {
    return UniqueFd{};
  }
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return UniqueFd{
      static_cast<int>(::syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how))};
}

// What maps says of a mapping of FD. On btrfs (subvolumes) and overlayfs that differs from stat(2),
// so the only comparison that always holds is one with a mapping of our own. It is never read.
bool maps_alike(int fd, const Mapping& mapping) {
  constexpr std::size_t kPage = 4096;
  void* const page = ::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, fd, 0);
  if (page == MAP_FAILED) {
    return false;
  }
  const auto maps = read_maps(base::Pid{::getpid()});
  const auto* const own =
      maps ? find_mapping(*maps, base::RemoteAddress{reinterpret_cast<std::uintptr_t>(page)})
           : nullptr;
  const bool alike = own != nullptr && own->inode == mapping.inode &&
                     own->device_major == mapping.device_major &&
                     own->device_minor == mapping.device_minor;
  ::munmap(page, kPage);
  return alike;
}

// LOCATED is an O_PATH descriptor: nothing has been opened yet.
std::variant<UniqueFd, NotOpened> open_if_same(const UniqueFd& located, const Mapping& mapping) {
  struct stat found {};
  if (::fstat(located.get(), &found) != 0) {
    return NotOpened{base::errno_text(errno)};
  }
  if (!S_ISREG(found.st_mode)) {
    return NotOpened{"not a regular file"};
  }
  UniqueFd file{::open(fmt::format("/proc/self/fd/{}", located.get()).c_str(),
                       O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  if (!file.valid()) {
    return NotOpened{base::errno_text(errno)};
  }
  const bool same = found.st_ino == mapping.inode && major(found.st_dev) == mapping.device_major &&
                    minor(found.st_dev) == mapping.device_minor;
  if (!same && !maps_alike(file.get(), mapping)) {
    return NotOpened{"another file than the mapped one"};
  }
  return file;
}

}  // namespace

std::variant<UniqueFd, NotOpened> open_mapped_file(base::Pid pid, const Mapping& mapping) {
  if (mapping.inode == 0) {
    return NotOpened{"the mapping has no file"};
  }
  const auto map_file = fmt::format("/proc/{}/map_files/{:x}-{:x}", pid.value(),
                                    mapping.begin.value(), mapping.end.value());
  const auto exe = fmt::format("/proc/{}/exe", pid.value());
  std::string why;
  const auto try_one = [&](const std::string& name, const UniqueFd& located) {
    auto result = located.valid()
                      ? open_if_same(located, mapping)
                      : std::variant<UniqueFd, NotOpened>{NotOpened{base::errno_text(errno)}};
    if (const auto* const failure = std::get_if<NotOpened>(&result)) {
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", name, failure->why);
    }
    return result;
  };
  auto result = try_one(map_file, UniqueFd{::open(map_file.c_str(), O_PATH | O_CLOEXEC)});
  if (std::holds_alternative<NotOpened>(result) && !mapping.deleted) {
    result = try_one(fmt::format("/proc/{}/root{}", pid.value(), mapping.path),
                     locate_beneath_root(pid, mapping.path));
  }
  if (std::holds_alternative<NotOpened>(result)) {
    result = try_one(exe, UniqueFd{::open(exe.c_str(), O_PATH | O_CLOEXEC)});
  }
  if (std::holds_alternative<NotOpened>(result)) {
    return NotOpened{why};
  }
  return result;
}

}  // namespace pyinject::procfs
