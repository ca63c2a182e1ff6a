// Programs with another /tmp.
#pragma once

#include <string>
#include <vector>

namespace pyinject::test {

// A prefix for commands that runs them in this mount namespace (of `unshare --mount`) with the /tmp
// that the shell command MOUNT mounts on /mnt, and without TMPDIR. The shell command THEN runs when
// it is in place. The tree, the interpreters and all that the command names keep their paths, even
// below /tmp.
[[nodiscard]] std::vector<std::string> with_own_tmp(const std::string& mount,
                                                    const std::string& then = ":");

// A prefix that runs them in a new mount namespace, with a tmpfs of OPTIONS ("ro", "mode=0755") as
// the /tmp of ROOT; empty: that of this process.
[[nodiscard]] std::vector<std::string> unshared_with_tmpfs(const std::string& root,
                                                           const std::string& options);

}  // namespace pyinject::test
