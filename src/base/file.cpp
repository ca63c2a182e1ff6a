#include "base/file.hpp"

#include "pyinject/base/error.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace pyinject::base {

namespace {

// Returns false with errno set on failure.
bool append_from(int fd, std::size_t limit, std::string& text) {
  std::array<char, 16384> buffer{};
  while (text.size() < limit) {
    const auto want = std::min(buffer.size(), limit - text.size());
    const ssize_t got = ::read(fd, buffer.data(), want);
    if (got == 0) {
      return true;
    }
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      return false;
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

std::string read_fd(int fd, std::size_t limit, const std::string& subject) {
  std::string text;
  if (!append_from(fd, limit, text)) {
    throw SystemError{"cannot read " + subject, errno};
  }
  return text;
}

std::optional<std::string> read_file(const std::string& path, std::size_t limit) {
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY)};
  std::string text;
  if (!fd.valid() || !append_from(fd.get(), limit, text)) {
    return std::nullopt;
  }
  return text;
}

void write_all(int fd, std::string_view data, const std::string& subject) {
  while (!data.empty()) {
    const ssize_t written = ::write(fd, data.data(), data.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      throw SystemError{"cannot write " + subject, errno};
    }
    data.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::optional<std::string> read_link(const std::string& path) {
  std::array<char, PATH_MAX> buffer{};
  const ssize_t length = ::readlink(path.c_str(), buffer.data(), buffer.size());
  if (length < 0) {
    return std::nullopt;
  }
  return std::string{buffer.data(), static_cast<std::size_t>(length)};
}

void throw_if_short(const std::string& subject) {
  const int error = errno;
  if (error != EMFILE && error != ENFILE && error != ENOMEM) {
    errno = error;
    return;
  }
  const UniqueFd probe{::open("/", O_PATH | O_CLOEXEC)};
  if (!probe.valid()) {
    throw SystemError{subject, errno};
  }
  errno = error;
}

DescriptorReserve::DescriptorReserve() {
  constexpr std::size_t kMost = 32;
  held_.reserve(kMost);
  while (held_.size() < kMost) {
    UniqueFd fd{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
    if (!fd.valid()) {
      return;
    }
    held_.push_back(std::move(fd));
  }
}

}  // namespace pyinject::base
