// For a child process that outlives this one: a guard.
#pragma once

namespace pyinject::base {

// In the child, after fork(): hides it from kills by process name and from the terminal; the OOM
// killer takes it last. It ignores the signals that ask a process to exit.
void stand_apart();

// Closes all descriptors but standard error and KEPT, since other processes may wait for their end
// of file.
void keep_only(int kept);

}  // namespace pyinject::base
