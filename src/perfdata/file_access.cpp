#include "perfdata/file_access.hpp"

#include "pyinject/base/error.hpp"

#include <cerrno>

#include <unistd.h>

namespace pyinject::perfdata {

std::size_t read_at(int fd, std::uint64_t offset, std::span<std::byte> into,
                    const std::string& name) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got =
        ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got == 0) {
      break;
    }
    if (got < 0) {
      if (errno == EINTR) {
        continue;
      }
      throw base::SystemError{"cannot read " + name, errno};
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void write_at(int fd, std::uint64_t offset, Bytes bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      throw base::SystemError{"cannot write " + name, errno};
    }
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace pyinject::perfdata
