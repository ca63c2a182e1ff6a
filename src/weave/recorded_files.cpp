#include "weave/recorded_files.hpp"

#include "procfs/namespaces.hpp"
#include "procfs/open_mapped.hpp"
#include "procfs/target_root.hpp"
#include "weave/build_id_cache.hpp"

#include <algorithm>
#include <variant>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace pyinject::weave {

namespace {

constexpr std::size_t kMostKept = 1000;  // descriptors

bool is_file(const procfs::Mapping& mapping) {
  return mapping.executable && mapping.inode != 0 && mapping.path.starts_with('/');
}

// For a chrooted process the kernel reports mappings relative to its root, /proc relative to ours.
bool is_same(const std::string& path, std::uint64_t inode, const unwind::MappedFile& file) {
  return file.inode == 0 ? path.ends_with(file.path) : inode == file.inode;
}

bool on_this_machine(const procfs::TargetRoot& own, const procfs::Mapping& mapping) {
  const auto facts = own.stat_beneath(mapping.path);
  return facts && facts->st_ino == mapping.inode && !mapping.deleted;
}

base::UniqueFd duplicate(const base::UniqueFd& file) {
  return base::UniqueFd{::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)};
}

// "ab/cdef...", the layout of these directories.
std::string split_build_id(const std::string& build_id) {
  return build_id.substr(0, 2) + "/" + build_id.substr(2);
}

}  // namespace

RecordedFiles::RecordedFiles() : build_id_folders_{"/usr/lib/debug/.build-id"} {
  if (const auto cache = build_id_cache_directory(); !cache.empty()) {
    build_id_folders_.push_back(cache + "/.build-id");
  }
}

const std::vector<procfs::Mapping>& RecordedFiles::mappings(std::uint32_t pid) {
  const auto found = mappings_.find(pid);
  if (found != mappings_.end()) {
    return found->second;
  }
  auto maps = procfs::read_maps(base::Pid{static_cast<pid_t>(pid)});
  return mappings_.emplace(pid, maps ? std::move(*maps) : std::vector<procfs::Mapping>{})
      .first->second;
}

void RecordedFiles::keep(base::Pid pid) {
  const auto maps = procfs::read_maps(pid);
  const auto own = procfs::TargetRoot::open(base::Pid{::getpid()});
  if (!maps || !own) {
    return;
  }
  const bool under_our_root = procfs::root_is_ours(pid).value_or(true);
  auto& files = kept_[static_cast<std::uint32_t>(pid.value())];
  for (const auto& mapping : *maps) {
    if (!is_file(mapping) || descriptors_ >= kMostKept ||
        (under_our_root && on_this_machine(*own, mapping)) ||
        std::ranges::any_of(files, [&](const Kept& one) {
          return one.inode == mapping.inode && one.path == mapping.path;
        })) {
      continue;
    }
    auto opened = procfs::open_mapped_file(pid, mapping);
    if (auto* const file = std::get_if<base::UniqueFd>(&opened)) {
      files.push_back({.inode = mapping.inode, .path = mapping.path, .file = std::move(*file)});
      ++descriptors_;
    }
  }
}

std::vector<base::UniqueFd> RecordedFiles::candidates(const unwind::MappedFile& file) {
  std::vector<base::UniqueFd> result;
  const auto kept = kept_.find(file.mapped_by);
  if (kept != kept_.end()) {
    for (const auto& one : kept->second) {
      if (is_same(one.path, one.inode, file)) {
        result.push_back(duplicate(one.file));
      }
    }
  }
  for (const auto& mapping : mappings(file.mapped_by)) {
    if (is_file(mapping) && mapping.begin.value() <= file.begin &&
        file.begin < mapping.end.value() && (file.inode == 0 || file.inode == mapping.inode) &&
        mapping.path == file.path) {
      auto opened =
          procfs::open_mapped_file(base::Pid{static_cast<pid_t>(file.mapped_by)}, mapping);
      if (auto* const found = std::get_if<base::UniqueFd>(&opened)) {
        result.push_back(std::move(*found));
      }
      break;
    }
  }
  if (const auto own = procfs::TargetRoot::open(base::Pid{::getpid()})) {
    auto found = own->open_beneath(file.path, O_RDONLY);
    struct stat facts {};
    const bool same = found.valid() && ::fstat(found.get(), &facts) == 0 &&
                      (file.inode == 0 || facts.st_ino == file.inode);
    if (same || (found.valid() && !file.build_id.empty())) {
      result.push_back(std::move(found));
    }
    if (file.build_id.size() > 2) {
      for (const auto& folder : build_id_folders_) {
        const auto stem = folder + "/" + split_build_id(file.build_id);
        for (const auto* const ending : {"/elf", "", ".debug"}) {
          result.push_back(own->open_beneath(stem + ending, O_RDONLY));
        }
      }
    }
  }
  return result;
}

}  // namespace pyinject::weave
