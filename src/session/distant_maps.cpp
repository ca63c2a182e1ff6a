#include "session/distant_maps.hpp"

#include <utility>

#include <fcntl.h>

namespace pyinject::session {

namespace {
// A root directory is held open for each.
constexpr std::size_t kMost = 4096;
}  // namespace

void DistantMaps::keep(const python::Target& target) {
  if (!target.foreign_namespace || places_.size() >= kMost) {
    return;
  }
  if (auto root = procfs::TargetRoot::open(target.id.pid)) {
    places_.insert_or_assign(target.id.pid,
                             Place{.root = *std::move(root), .path = target.map_path});
  }
}

std::vector<base::Pid> DistantMaps::pids() const {
  std::vector<base::Pid> pids;
  for (const auto& entry : places_) {
    pids.push_back(entry.first);
  }
  return pids;
}

base::UniqueFd DistantMaps::take(base::Pid pid) {
  const auto place = places_.extract(pid);
  return place.empty() ? base::UniqueFd{}
                       : place.mapped().root.open_beneath(place.mapped().path, O_RDONLY,
                                                          procfs::TargetRoot::Links::kNone);
}

}  // namespace pyinject::session
