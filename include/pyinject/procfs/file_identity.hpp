// Identity of a mapped file, as the kernel reports it: a key for caches.
//
// For example:
//   std::set<procfs::FileIdentity> judged;
//   const procfs::FileIdentity file{.device_major = 8, .device_minor = 1, .inode = 4711};
//   const bool fresh = judged.insert(file).second;
#pragma once

#include "pyinject/version.hpp"

#include <compare>
#include <cstdint>

namespace pyinject::procfs {

// Fields are zero if unknown.
struct FileIdentity {
  std::uint32_t device_major = 0;  // of the superblock; stat's st_dev differs on btrfs, overlayfs
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;  // of the inode number, which file systems reuse
  auto operator<=>(const FileIdentity&) const = default;
};

}  // namespace pyinject::procfs
