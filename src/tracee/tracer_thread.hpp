// Threads that trace. They are created before a target is touched, so that a later shortage of
// threads does not leave a target on.
#pragma once

#include <functional>

namespace pyinject::tracee {

// Runs WORK on a tracer thread and waits for it. Rethrows exceptions of WORK.
//
// The thread exits if WORK has called report_detached(false): then the kernel detaches everything
// that it still traces, including a thread that could not be stopped in time and therefore cannot
// be detached explicitly (kernel exit_ptrace()). If the system provides no other thread, this one
// first waits a second for such threads to stop, detaches them, and is used again.
//
// If the system provides no more threads, waits for one that is in use. Throws base::SystemError if
// there is none.
void on_tracer_thread(const std::function<void()>& work);

// Call it on a tracer thread at the end of each trace, also of one that failed. ALL: the thread no
// longer traces anything.
void report_detached(bool all);

// Creates idle tracer threads: one, and a spare for when the first had to exit. Throws
// base::SystemError if the system provides none.
void prepare_tracer_threads();

}  // namespace pyinject::tracee
