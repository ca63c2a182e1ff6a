// Small helpers for files. All reads are bounded.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::base {

// Reads from FD up to its end or LIMIT bytes. Throws SystemError naming SUBJECT.
[[nodiscard]] std::string read_fd(int fd, std::size_t limit, const std::string& subject);

// Opens PATH read-only (O_CLOEXEC) and reads it; nullopt: it cannot be opened or read, errno says
// why. For files of /proc, where a failure usually means that the process has exited.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path,
                                                   std::size_t limit = std::size_t{16} << 20);

// Writes all of DATA or throws SystemError naming SUBJECT.
void write_all(int fd, std::string_view data, const std::string& subject);

// The target of a symbolic link; nullopt: unreadable, errno says why.
[[nodiscard]] std::optional<std::string> read_link(const std::string& path);

// Throws SystemError{SUBJECT, errno} if errno means a shortage of descriptors or memory and there
// really is one: a target's file system can return any errno.
void throw_if_short(const std::string& subject);

// Descriptors reserved for the end of a session.
class DescriptorReserve {
 public:
  // Reserves as many as it can get.
  DescriptorReserve();
  // Releases them to the process.
  void release() { held_.clear(); }

 private:
  std::vector<UniqueFd> held_;
};

}  // namespace pyinject::base
