// The way from a mapping to its file, without trusting the path that maps shows.
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
  std::string why;  // a phrase naming what was tried
};

// What stat(2) gives for the file behind MAPPING of PID, without opening it. By map_files only,
// which leads to the mapped file itself. nullopt: errno says why.
[[nodiscard]] std::optional<struct stat> stat_mapped_file(base::Pid pid, const Mapping& mapping);

// The file behind MAPPING of PID, open for reading. Tried in this order:
//   /proc/PID/map_files/BEGIN-END  right for deleted files and any root; needs CAP_SYS_ADMIN or
//                                  CAP_CHECKPOINT_RESTORE (proc_map_files_get_link)
//   PATH beneath /proc/PID/root    for everybody who may ptrace the process
//   PATH beneath our own root      what maps shows of a chrooted process (d_path: the reader's
//   root) /proc/PID/exe                  the executable, also when deleted
// and taken only if it is a regular file and the mapping's own (device and inode). Anything else
// (FIFO, device) is looked at but never opened. Throws base::SystemError at a shortage of
// descriptors or memory.
[[nodiscard]] std::variant<base::UniqueFd, NotOpened> open_mapped_file(base::Pid pid,
                                                                       const Mapping& mapping);

}  // namespace pyinject::procfs
