// Compares namespaces and root of a process with ours. namespaces(7).
#pragma once

#include "procfs/status.hpp"
#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <optional>

namespace pyinject::procfs {

enum class Namespace { kMount, kPid, kUser };

// nullopt: unknown (exited, or no permission to trace); errno says why.
[[nodiscard]] std::optional<bool> in_our_namespace(base::Pid pid, Namespace kind);

// The inode number that identifies the namespace among those of its kind. nullopt as above.
[[nodiscard]] std::optional<std::uint64_t> namespace_number(base::Pid pid, Namespace kind);
// The same for this process, even if /proc belongs to another pid namespace.
[[nodiscard]] std::optional<std::uint64_t> own_namespace_number(Namespace kind);

// The number of the initial pid namespace, in which every process is visible (PROC_PID_INIT_INO).
inline constexpr std::uint64_t kFirstPidNamespace = 0xEFFFFFFC;
// The same of user namespaces (PROC_USER_INIT_INO).
inline constexpr std::uint64_t kFirstUserNamespace = 0xEFFFFFFD;

// Whether its root directory is ours. False for chrooted processes even in our mount namespace.
// True does not imply the same mounts (PrivateTmp=): check the mount namespace as well. nullopt as
// above.
[[nodiscard]] std::optional<bool> root_is_ours(base::Pid pid);

// Its pid in its own pid namespace, which os.getpid() returns there and which names its perf map.
[[nodiscard]] base::Pid inner_pid(const Status& status);

}  // namespace pyinject::procfs
