#include "base/scratch_directory.hpp"

#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::base {

namespace {

namespace filesystem = std::filesystem;

constexpr auto kPrefix = "perf-pyinject";
constexpr auto kRandom = "XXXXXX";

std::string parent() {
  const char* const chosen = ::secure_getenv("TMPDIR");
  return chosen == nullptr || *chosen == '\0' ? "/tmp" : chosen;
}

// Not valid: a process has it, or it is none of this user's.
UniqueFd lock_directory(const std::string& path) {
  UniqueFd directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  struct stat facts {};
  if (!directory.valid() || ::fstat(directory.get(), &facts) != 0 || facts.st_uid != ::geteuid() ||
      (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0 ||
      ::flock(directory.get(), LOCK_EX | LOCK_NB) != 0) {
    return {};
  }
  return directory;
}

// Whether PATH is what DIRECTORY has open.
bool is_at(const UniqueFd& directory, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(directory.get(), &open) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

void remove_abandoned(const std::string& directory) {
  std::error_code error;
  for (filesystem::directory_iterator each{directory, error}, end; !error && each != end;
       each.increment(error)) {
    const auto path = each->path().string();
    if (each->path().filename().string().starts_with(kPrefix)) {
      if (const auto lock = lock_directory(path); lock.valid() && is_at(lock, path)) {
        std::error_code ignored;
        filesystem::remove_all(path, ignored);
      }
    }
  }
}

}  // namespace

ScratchDirectory::ScratchDirectory(const std::string& purpose) {
  const auto directory = parent();
  remove_abandoned(directory);
  // Another process may take a new directory for an abandoned one, until it is locked.
  while (!lock_.valid() || !is_at(lock_, path_)) {
    path_ = fmt::format("{}/{}{}{}", directory, kPrefix, purpose, kRandom);
    if (::mkdtemp(path_.data()) == nullptr) {
      throw SystemError{path_, errno};
    }
    lock_ = lock_directory(path_);
    if (!lock_.valid() && errno != ENOENT && errno != EWOULDBLOCK) {
      const int code = errno;
      (void)::rmdir(path_.c_str());
      throw SystemError{path_, code};
    }
  }
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  filesystem::remove_all(path_, ignored);
}

}  // namespace pyinject::base
