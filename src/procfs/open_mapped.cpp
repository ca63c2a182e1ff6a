#include "procfs/open_mapped.hpp"

#include "base/file.hpp"
#include "base/text.hpp"
#include "procfs/reopen.hpp"
#include "procfs/target_root.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <optional>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace pyinject::procfs {

namespace {

using base::UniqueFd;

// A link to the mapped file itself; needs privileges.
std::string map_files_link(base::Pid pid, const Mapping& mapping) {
  return fmt::format("/proc/{}/map_files/{:x}-{:x}", pid.value(), mapping.begin.value(),
                     mapping.end.value());
}

// Whether a mapping of FD looks like MAPPING in maps. On btrfs (subvolumes) and overlayfs maps and
// stat(2) differ, so only a mapping of our own is always comparable. It is never read.
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

// LOCATED is an O_PATH descriptor: the file is not open yet.
std::variant<UniqueFd, NotOpened> open_if_same(const UniqueFd& located, const Mapping& mapping) {
  struct stat found {};
  if (::fstat(located.get(), &found) != 0) {
    return NotOpened{base::errno_text(errno)};
  }
  if (!S_ISREG(found.st_mode)) {
    return NotOpened{"not a regular file"};
  }
  UniqueFd file = reopen(located, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (!file.valid()) {
    base::throw_if_short("cannot open " + base::printable(mapping.path));
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

std::optional<struct stat> stat_mapped_file(base::Pid pid, const Mapping& mapping) {
  struct stat facts {};
  if (::stat(map_files_link(pid, mapping).c_str(), &facts) != 0) {
    return std::nullopt;
  }
  return facts;
}

std::variant<UniqueFd, NotOpened> open_mapped_file(base::Pid pid, const Mapping& mapping) {
  if (mapping.inode == 0) {
    return NotOpened{"the mapping has no file"};
  }
  std::string why;
  std::optional<UniqueFd> file;
  const auto attempt = [&](const std::string& name, const UniqueFd& located) {
    if (file) {
      return;
    }
    if (!located.valid()) {
      base::throw_if_short("cannot open " + name);
    }
    auto result = located.valid()
                      ? open_if_same(located, mapping)
                      : std::variant<UniqueFd, NotOpened>{NotOpened{base::errno_text(errno)}};
    if (const auto* const failure = std::get_if<NotOpened>(&result)) {
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", name, failure->why);
    } else {
      file = std::get<UniqueFd>(std::move(result));
    }
  };
  const auto attempt_link = [&](const std::string& path) {
    attempt(path, UniqueFd{::open(path.c_str(), O_PATH | O_CLOEXEC)});
  };
  const auto attempt_root = [&](base::Pid whose) {
    const auto root = TargetRoot::open(whose);
    attempt(fmt::format("/proc/{}/root{}", whose.value(), base::printable(mapping.path)),
            root ? root->locate(mapping.path) : UniqueFd{});
  };
  attempt_link(map_files_link(pid, mapping));
  if (!mapping.deleted) {
    attempt_root(pid);
    attempt_root(base::Pid{::getpid()});
  }
  attempt_link(fmt::format("/proc/{}/exe", pid.value()));
  if (file) {
    return std::move(*file);
  }
  return NotOpened{why};
}

}  // namespace pyinject::procfs
