// Which file a mapping is of, as the kernel numbers it: a key to remember files by.
#pragma once

#include <compare>
#include <cstdint>

namespace pyinject::procfs {

// Zero where it is not known.
struct FileIdentity {
  std::uint32_t device_major = 0;  // of the superblock: on btrfs and overlayfs not stat's st_dev
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::uint64_t generation = 0;  // of the inode's number: it is given to other files later
  auto operator<=>(const FileIdentity&) const = default;
};

}  // namespace pyinject::procfs
