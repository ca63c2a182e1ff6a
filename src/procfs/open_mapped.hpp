// Opens the file of a mapping without trusting the path in maps.
#pragma once

#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <optional>
#include <string>
#include <variant>

#include <sys/stat.h>

namespace pyinject::procfs {

struct NotOpened {
  std::string why;  // a phrase that lists what was tried
};

// The result of stat(2) for the file of MAPPING in PID, without opening it. Uses only map_files,
// which leads to the mapped file itself. nullopt: errno says why.
[[nodiscard]] std::optional<struct stat> stat_mapped_file(base::Pid pid, const Mapping& mapping);

// Opens the file of MAPPING in PID for reading. Tries in this order:
//   /proc/PID/map_files/BEGIN-END  works for deleted files and any root; needs CAP_SYS_ADMIN or
//                                  CAP_CHECKPOINT_RESTORE (proc_map_files_get_link)
//   PATH beneath /proc/PID/root    for callers that may ptrace the process
//   PATH beneath our own root      for chrooted processes (d_path: relative to the reader's root)
//   /proc/PID/exe                  the executable, even if deleted
// Accepts only a regular file that is the mapped one (device and inode). Other files (FIFO, device)
// are examined but never opened. Throws base::SystemError if descriptors or memory are short.
[[nodiscard]] std::variant<base::UniqueFd, NotOpened> open_mapped_file(base::Pid pid,
                                                                       const Mapping& mapping);

}  // namespace pyinject::procfs
