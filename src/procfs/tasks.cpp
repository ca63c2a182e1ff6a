#include "procfs/tasks.hpp"

#include "procfs/numbered_entries.hpp"
#include "procfs/read_process_file.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

namespace pyinject::procfs {

namespace {

// The ids listed in PATH; those found so far if is_gone_or_denied() ended the listing.
template <typename Id>
std::vector<Id> numbered_entries(const std::string& path) {
  std::vector<Id> ids;
  const int error = for_each_number(path, [&ids](int number) {
    if (number > 0) {
      ids.emplace_back(number);
    }
  });
  if (error != 0 && !is_gone_or_denied(error)) {
    throw base::SystemError{"cannot list " + path, error};
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

// Of a directory /proc/PID/task.
std::optional<std::size_t> threads_of(const struct stat& directory) {
  constexpr std::size_t kOwnLinks = 2;
  if (directory.st_nlink < kOwnLinks) {
    return std::nullopt;
  }
  return directory.st_nlink - kOwnLinks;
}

}  // namespace

std::vector<base::Tid> list_tasks(base::Pid pid) {
  constexpr int kAttempts = 4;  // one of 200 listings was incomplete
  const auto path = fmt::format("/proc/{}/task", pid.value());
  std::vector<base::Tid> tids;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    struct stat facts {};
    const auto counted = ::stat(path.c_str(), &facts) == 0 ? threads_of(facts) : std::nullopt;
    tids = numbered_entries<base::Tid>(path);
    if (!counted || tids.size() >= *counted) {
      break;
    }
  }
  return tids;
}

base::UniqueFd open_tasks(base::Pid pid) {
  return base::UniqueFd{
      ::open(fmt::format("/proc/{}/task", pid.value()).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
}

std::optional<std::size_t> count_tasks(const base::UniqueFd& tasks) {
  struct stat facts {};
  return ::fstat(tasks.get(), &facts) == 0 ? threads_of(facts) : std::nullopt;
}

std::optional<std::string> read_comm(base::Pid pid, base::Tid tid) {
  constexpr std::size_t kMost = 64;  // TASK_COMM_LEN (16) and a newline
  auto name =
      read_process_file(fmt::format("/proc/{}/task/{}/comm", pid.value(), tid.value()), kMost);
  if (name && name->ends_with('\n')) {
    name->pop_back();
  }
  return name;
}

std::vector<base::Pid> list_processes() {
  auto processes = numbered_entries<base::Pid>("/proc");
  if (processes.empty()) {
    throw base::Error{"/proc lists no process: is it mounted?"};
  }
  return processes;
}

}  // namespace pyinject::procfs
