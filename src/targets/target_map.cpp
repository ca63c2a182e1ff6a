#include "targets/target_map.hpp"

#include "procfs/namespaces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pyinject::targets {

std::vector<uid_t> map_owners(base::Pid pid, const procfs::Status& status) {
  std::vector<uid_t> owners{status.uids.begin(), status.uids.end()};
  // A service may have dropped its privileges after opening its map. Mounting needs root, unless
  // the process has its own user namespace.
  if (procfs::in_our_namespace(pid, procfs::Namespace::kUser).value_or(false)) {
    owners.push_back(0);
  }
  return owners;
}

base::UniqueFd open_target_map(const procfs::TargetRoot& root, const std::string& path,
                               const std::vector<uid_t>& owners, procfs::TargetRoot::Links links) {
  auto file = root.open_beneath(path, O_RDONLY, links);
  struct stat facts {};
  const bool own = file.valid() && ::fstat(file.get(), &facts) == 0 &&
                   std::ranges::find(owners, facts.st_uid) != owners.end();
  return own ? std::move(file) : base::UniqueFd{};
}

base::UniqueFd open_perf_map(std::uint32_t number) {
  const base::Pid pid{static_cast<pid_t>(number)};
  const auto status = procfs::read_status(pid);
  const auto root = status ? procfs::TargetRoot::open(pid) : std::nullopt;
  if (root && !status->namespace_pids.empty()) {
    auto own =
        open_target_map(*root, fmt::format("/tmp/perf-{}.map", status->namespace_pids.back()),
                        map_owners(pid, *status));
    if (own.valid()) {
      return own;
    }
  }
  const auto ours = procfs::TargetRoot::open(base::Pid{::getpid()});
  return ours ? ours->open_beneath(fmt::format("/tmp/perf-{}.map", number), O_RDONLY)
              : base::UniqueFd{};
}

}  // namespace pyinject::targets
