#include "procfs/tasks.hpp"

#include "base/text.hpp"
#include "procfs/read_process_file.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include <dirent.h>

namespace pyinject::procfs {

namespace {

struct CloseDir {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// The entries of PATH that are numbers. None: is_gone_or_denied(errno).
template <typename Id>
std::vector<Id> numbered_entries(const std::string& path) {
  std::vector<Id> ids;
  const std::unique_ptr<DIR, CloseDir> folder{::opendir(path.c_str())};
  while (folder) {
    errno = 0;  // NULL is the end as well
    const dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr) {
      break;
    }
    if (const auto number = base::parse_number<pid_t>(entry->d_name); number && *number > 0) {
      ids.emplace_back(*number);
    }
  }
  if (errno != 0 && !is_gone_or_denied(errno)) {
    throw base::SystemError{"cannot list " + path, errno};
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

std::vector<base::Tid> list_tasks(base::Pid pid) {
  return numbered_entries<base::Tid>(fmt::format("/proc/{}/task", pid.value()));
}

std::vector<base::Pid> list_processes() {
  auto processes = numbered_entries<base::Pid>("/proc");
  if (processes.empty()) {
    throw base::Error{"/proc lists no process: is it mounted"};
  }
  return processes;
}

}  // namespace pyinject::procfs
