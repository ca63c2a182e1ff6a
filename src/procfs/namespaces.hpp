// Does a process live in our namespaces and under our root? namespaces(7).
#pragma once

#include "procfs/status.hpp"
#include "pyinject/base/pid.hpp"

#include <cstdint>
#include <optional>

namespace pyinject::procfs {

enum class Namespace { kMount, kPid, kUser };

// nullopt: cannot be told (gone, or no permission to trace it); errno says why.
[[nodiscard]] std::optional<bool> in_our_namespace(base::Pid pid, Namespace kind);

// The inode number of its namespace, by which the kernel tells namespaces of a kind apart. nullopt
// as above.
[[nodiscard]] std::optional<std::uint64_t> namespace_number(base::Pid pid, Namespace kind);
// The same of this process, whatever pid namespace /proc is of.
[[nodiscard]] std::optional<std::uint64_t> own_namespace_number(Namespace kind);

// The number of the first pid namespace, in which every process can be seen (PROC_PID_INIT_INO).
inline constexpr std::uint64_t kFirstPidNamespace = 0xEFFFFFFC;

// Its root directory is this process's. False for chrooted processes even in our mount namespace.
// True says nothing about what is mounted below (PrivateTmp=): ask for the mount namespace as well.
// nullopt as above.
[[nodiscard]] std::optional<bool> root_is_ours(base::Pid pid);

// Its number in its own pid namespace, which os.getpid() gives there and perf maps are named by.
[[nodiscard]] base::Pid inner_pid(const Status& status);

}  // namespace pyinject::procfs
