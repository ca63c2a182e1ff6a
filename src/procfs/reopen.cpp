#include "procfs/reopen.hpp"

#include "procfs/descriptors.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

namespace pyinject::procfs {

base::UniqueFd reopen(const base::UniqueFd& located, int flags) {
  return base::UniqueFd{::open(own_descriptor_path(located.get()).c_str(), flags)};
}

bool holds_data(const base::UniqueFd& located) {
  constexpr std::uint64_t kConfigFs = 0x62656570;
  constexpr std::uint64_t kFuseControl = 0x65735543;
  constexpr std::uint64_t kMessageQueues = 0x19800202;
  constexpr std::array kInterfaces = std::to_array<std::uint64_t>(
      {PROC_SUPER_MAGIC, SYSFS_MAGIC, TRACEFS_MAGIC, DEBUGFS_MAGIC, SECURITYFS_MAGIC, SELINUX_MAGIC,
       SMACK_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC, PSTOREFS_MAGIC,
       EFIVARFS_MAGIC, BINFMTFS_MAGIC, NSFS_MAGIC, DEVPTS_SUPER_MAGIC, RDTGROUP_SUPER_MAGIC,
       kConfigFs, kFuseControl, kMessageQueues});
  struct statfs facts {};
  return ::fstatfs(located.get(), &facts) == 0 &&
         std::ranges::find(kInterfaces, static_cast<std::uint64_t>(facts.f_type)) ==
             kInterfaces.end();
}

}  // namespace pyinject::procfs
