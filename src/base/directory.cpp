#include "pyinject/base/directory.hpp"

#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace pyinject::base {

namespace {

struct CloseStream {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

UniqueFd open_path(int from, const std::string& path, int flags) {
  return UniqueFd{::openat(from, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | flags)};
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) {
    return {".", path};
  }
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

struct Link {
  std::string target;
  uid_t owner = 0;
};

// Both of one link, whatever has its name meanwhile.
std::optional<Link> link_in(const Place& place) {
  const UniqueFd link{
      ::openat(place.directory.fd(), place.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
  struct stat facts {};
  if (!link.valid() || ::fstat(link.get(), &facts) != 0 || !S_ISLNK(facts.st_mode)) {
    return std::nullopt;
  }
  std::array<char, PATH_MAX> buffer{};
  const auto length = ::readlinkat(link.get(), "", buffer.data(), buffer.size());
  if (length < 0) {
    return std::nullopt;
  }
  return Link{.target = {buffer.data(), static_cast<std::size_t>(length)}, .owner = facts.st_uid};
}

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_ino == other.st_ino && one.st_dev == other.st_dev;
}

// Links on proc (/proc/self/fd/1) may lead to files without a path.
bool is_proc(int fd) {
  struct statfs facts {};
  return ::fstatfs(fd, &facts) == 0 && facts.f_type == PROC_SUPER_MAGIC;
}

}  // namespace

Directory::Directory(std::string path)
    : path_{std::move(path)}, fd_{open_path(AT_FDCWD, path_, 0)} {
  if (!fd_.valid()) {
    throw SystemError{"cannot open the directory " + path_, errno};
  }
}

Directory Directory::make(const std::string& name, mode_t mode, uid_t owner) const {
  const auto path = path_of(name);
  if (::mkdirat(fd(), name.c_str(), mode) != 0 && errno != EEXIST) {
    throw SystemError{"cannot create " + path, errno};
  }
  auto made = open_path(fd(), name, O_NOFOLLOW);
  struct stat facts {};
  if (!made.valid() || ::fstat(made.get(), &facts) != 0) {
    throw SystemError{"cannot use " + path + " as a directory", errno};
  }
  if (facts.st_uid != ::geteuid() && facts.st_uid != owner) {
    throw Error{fmt::format("{} belongs to uid {}: remove it", path, facts.st_uid)};
  }
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error{path + " is writable by other users: remove it, or chmod go-w"};
  }
  return Directory{path, std::move(made)};
}

UniqueFd Directory::open(const std::string& name) const {
  UniqueFd file{
      ::openat(fd(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (!file.valid()) {
    throw SystemError{"cannot open " + path_of(name), errno};
  }
  return file;
}

void Directory::rename(const std::string& from, const std::string& to) const {
  if (::renameat(fd(), from.c_str(), fd(), to.c_str()) != 0) {
    throw SystemError{"cannot rename " + path_of(from) + " to " + to, errno};
  }
}

void Directory::remove(const std::string& name) const {
  if (::unlinkat(fd(), name.c_str(), 0) != 0 && errno != ENOENT) {
    throw SystemError{"cannot remove " + path_of(name), errno};
  }
}

void Directory::remove_with_files(const std::string& name, const struct stat* only) const {
  UniqueFd inside{::openat(fd(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!inside.valid() && only == nullptr && (errno == ENOTDIR || errno == ELOOP)) {  // a link, file
    remove(name);
    return;
  }
  if (!inside.valid() && errno == ENOENT) {
    return;
  }
  struct stat facts {};
  if (only != nullptr && (::fstat(inside.get(), &facts) != 0 || !same_file(facts, *only))) {
    throw Error{path_of(name) + " was replaced by another process"};
  }
  const std::unique_ptr<DIR, CloseStream> entries{::fdopendir(inside.get())};
  if (!entries) {
    throw SystemError{"cannot remove " + path_of(name), errno};
  }
  const int from = inside.release();  // the stream owns it now
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view one{entry->d_name};
    if (one != "." && one != ".." && ::unlinkat(from, entry->d_name, 0) != 0 && errno != ENOENT) {
      throw SystemError{fmt::format("cannot remove {}/{}", path_of(name), one), errno};
    }
  }
  if (::unlinkat(fd(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    throw SystemError{"cannot remove " + path_of(name), errno};
  }
}

Place Place::of(const std::string& path) {
  auto [directory, name] = split_path(path);
  return {.directory = Directory{std::move(directory)}, .name = std::move(name)};
}

Place Place::behind(const std::string& path) {
  constexpr int kMostLinks = 40;  // as in the kernel
  auto place = of(path);
  for (int links = 0; links < kMostLinks; ++links) {
    const auto link = link_in(place);
    if (!link || is_proc(place.directory.fd())) {
      return place;
    }
    if (link->owner != 0 && link->owner != ::geteuid()) {
      throw Error{fmt::format("{} is a symbolic link that belongs to uid {}: not followed",
                              place.directory.path_of(place.name), link->owner)};
    }
    auto [directory, name] = split_path(link->target);
    auto next = link->target.starts_with('/') ? directory : place.directory.path_of(directory);
    auto opened = open_path(place.directory.fd(), directory, 0);
    if (!opened.valid()) {
      throw SystemError{"cannot open the directory " + next, errno};
    }
    place = {.directory = Directory{std::move(next), std::move(opened)}, .name = std::move(name)};
  }
  throw SystemError{"cannot open " + path, ELOOP};
}

NewFile::NewFile(const Directory& directory, std::string name)
    : directory_{directory},
      final_name_{std::move(name)},
      fd_{::openat(directory.fd(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)} {
  if (!fd_.valid()) {  // not all file systems support O_TMPFILE
    create_named();
  }
}

NewFile::~NewFile() {
  if (!name_.empty()) {
    ::unlinkat(directory_.fd(), name_.c_str(), 0);
  }
}

void NewFile::create_named() {
  constexpr int kMostTries = 1000;
  for (int number = 0; number < kMostTries; ++number) {
    auto name = fmt::format("{}.new{}", final_name_, number);
    fd_.reset(::openat(directory_.fd(), name.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd_.valid()) {
      name_ = std::move(name);
      return;
    }
    if (errno != EEXIST) {
      break;
    }
  }
  throw SystemError{"cannot write next to " + directory_.path_of(final_name_), errno};
}

void NewFile::resemble(const struct stat& facts) const {
  auto mode = facts.st_mode & 0777U;
  if (::fchown(fd(), facts.st_uid, facts.st_gid) != 0) {  // only root can change the owner
    mode &= ~(S_IRWXG & ~((mode & S_IRWXO) << 3U));       // the group differs
  }
  (void)::fchmod(fd(), mode);
}

void NewFile::give_name() {
  constexpr int kMostTries = 1000;
  const auto self = fmt::format("/proc/self/fd/{}", fd());
  for (int number = 0; number < kMostTries; ++number) {
    auto name = fmt::format("{}.new{}", final_name_, number);
    if (::linkat(AT_FDCWD, self.c_str(), directory_.fd(), name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      name_ = std::move(name);
      return;
    }
    if (errno != EEXIST) {
      break;
    }
  }
  throw SystemError{"cannot write next to " + directory_.path_of(final_name_), errno};
}

void NewFile::make_named() {
  if (name_.empty()) {
    give_name();
  }
  // In another user's directory, the name may already refer to another file.
  struct stat ours {};
  struct stat named {};
  if (::fstat(fd(), &ours) != 0 ||
      ::fstatat(directory_.fd(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      !same_file(ours, named)) {
    throw Error{directory_.path_of(name_) + " was replaced by another process"};
  }
}

void NewFile::take_place() {
  make_named();
  if (::renameat(directory_.fd(), name_.c_str(), directory_.fd(), final_name_.c_str()) != 0) {
    throw SystemError{"cannot rename " + name_ + " to " + directory_.path_of(final_name_), errno};
  }
  name_.clear();
}

std::string NewFile::take_place_of_directory() {
  make_named();
  if (::renameat2(directory_.fd(), name_.c_str(), directory_.fd(), final_name_.c_str(),
                  RENAME_EXCHANGE) == 0) {
    return std::exchange(name_, {});
  }
  if (errno != EINVAL && errno != ENOSYS) {
    throw SystemError{
        fmt::format("cannot exchange {} and {}", name_, directory_.path_of(final_name_)), errno};
  }
  auto aside = name_ + ".directory";
  directory_.rename(final_name_, aside);
  try {
    directory_.rename(name_, final_name_);
  } catch (const Error&) {
    directory_.rename(aside, final_name_);
    throw;
  }
  name_.clear();
  return aside;
}

}  // namespace pyinject::base
