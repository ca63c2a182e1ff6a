#include "cli/output_file.hpp"

#include "base/file.hpp"
#include "pyinject/base/error.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::cli {

OutputFile::OutputFile(std::string path) : path_{std::move(path)} {
  if (path_ == "-") {
    return;
  }
  const auto& place = place_.emplace(base::Place::behind(path_));
  struct stat facts {};
  if (::fstatat(place.directory.fd(), place.name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
      (S_ISCHR(facts.st_mode) || S_ISFIFO(facts.st_mode))) {  // /dev/null: must not be replaced
    device_.reset(::openat(place.directory.fd(), place.name.c_str(),
                           O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
    if (!device_.valid()) {
      throw base::SystemError{path_, errno};
    }
    return;
  }
  file_.emplace(place);
}

void OutputFile::write(std::string_view text) {
  const int fd = file_ ? file_->fd() : device_.valid() ? device_.get() : STDOUT_FILENO;
  base::write_all(fd, text, fd == STDOUT_FILENO ? "standard output" : path_);
}

void OutputFile::complete() {
  if (!file_) {
    return;
  }
  constexpr mode_t kReadable = 0644;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(file_->fd(), kReadable & ~mask) != 0) {
    throw base::SystemError{path_, errno};
  }
  file_->take_place();
}

}  // namespace pyinject::cli
