#include "pyinject/procfs/tasks.hpp"

#include "pyinject/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include <dirent.h>

namespace pyinject::procfs {

namespace {

struct CloseDir {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// The entries of PATH that are numbers.
template <typename Id>
std::vector<Id> numbered_entries(const std::string& path) {
  std::vector<Id> ids;
  const std::unique_ptr<DIR, CloseDir> folder{::opendir(path.c_str())};
  if (!folder) {
    return ids;
  }
  while (const dirent* const entry = ::readdir(folder.get())) {
    if (const auto number = base::parse_number<pid_t>(entry->d_name); number && *number > 0) {
      ids.emplace_back(*number);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace

std::vector<base::Tid> list_tasks(base::Pid pid) {
  return numbered_entries<base::Tid>(fmt::format("/proc/{}/task", pid.value()));
}

std::vector<base::Pid> list_processes() { return numbered_entries<base::Pid>("/proc"); }

}  // namespace pyinject::procfs
