#include "targets/container_maps.hpp"

#include "procfs/namespaces.hpp"
#include "procfs/status.hpp"
#include "targets/target_map.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace pyinject::targets {

namespace {
// One open directory for each.
constexpr std::size_t kMost = 4096;
}  // namespace

void ContainerMaps::keep(base::Pid pid) {
  using procfs::Namespace;
  const auto status = procfs::read_status(pid);
  if (!status || places_.size() >= kMost) {
    return;
  }
  const auto inner = procfs::inner_pid(*status);
  const bool ours = inner == pid && procfs::root_is_ours(pid).value_or(false) &&
                    procfs::in_our_namespace(pid, Namespace::kMount).value_or(false);
  const auto root = ours ? std::nullopt : procfs::TargetRoot::open(pid);
  if (auto folder = root ? root->folder("/tmp") : std::nullopt) {
    places_.insert_or_assign(pid, Place{.folder = *std::move(folder),
                                        .name = fmt::format("perf-{}.map", inner.value()),
                                        .owners = map_owners(pid, *status)});
  }
}

std::vector<base::Pid> ContainerMaps::pids() const {
  std::vector<base::Pid> pids;
  for (const auto& entry : places_) {
    pids.push_back(entry.first);
  }
  return pids;
}

base::UniqueFd ContainerMaps::take(base::Pid pid) {
  const auto place = places_.extract(pid);
  return place.empty() ? base::UniqueFd{}
                       : open_target_map(place.mapped().folder, place.mapped().name,
                                         place.mapped().owners, procfs::TargetRoot::Links::kNone);
}

}  // namespace pyinject::targets
