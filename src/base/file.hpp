// Small helpers around files. All sizes are bounded: nothing read may grow without limit.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::base {

// Reads from FD until its end or LIMIT bytes. Throws SystemError naming SUBJECT.
[[nodiscard]] std::string read_fd(int fd, std::size_t limit, const std::string& subject);

// Opens PATH read-only (O_CLOEXEC) and reads it; nullopt when it cannot be opened or read: errno
// says why. For files of /proc: the reason of a failure is mostly that the process has gone.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path,
                                                   std::size_t limit = std::size_t{16} << 20);

// Writes all of DATA or throws SystemError naming SUBJECT.
void write_all(int fd, std::string_view data, const std::string& subject);

// The text of a symbolic link; nullopt when it cannot be read (errno says why).
[[nodiscard]] std::optional<std::string> read_link(const std::string& path);

// Throws SystemError{SUBJECT, errno} when errno is that of a shortage of descriptors or memory, and
// there is one: the file system of a target can answer with any errno.
void throw_if_short(const std::string& subject);

// Descriptors that are held until the end of a session needs them.
class DescriptorReserve {
 public:
  // Takes as many as it gets.
  DescriptorReserve();
  // Gives them back to the process.
  void release() { held_.clear(); }

 private:
  std::vector<UniqueFd> held_;
};

}  // namespace pyinject::base
