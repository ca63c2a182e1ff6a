// Threads that trace. They are made before a target is touched, so that a shortage of threads later
// does not leave a target on.
#pragma once

#include <functional>

namespace pyinject::tracee {

// Runs WORK on a tracer thread and waits for it. Exceptions of WORK are passed on.
//
// The thread is used again only if WORK has called report_detached(true), no report was false, and
// WORK has not thrown. Otherwise the thread ends: then the kernel detaches all that the thread
// still traces, also a thread that could not be stopped in time and therefore cannot be detached
// explicitly (kernel exit_ptrace()).
//
// When the system gives no more threads, this waits for one that is in use. Throws
// base::SystemError when there is none.
void on_tracer_thread(const std::function<void()>& work);

// On a tracer thread, at the end of a trace. ALL: the thread traces nothing of it any more.
void report_detached(bool all);

// Makes tracer threads that wait for work: one, and one for the time after the first had to end.
// Throws base::SystemError when the system gives none.
void prepare_tracer_threads();

}  // namespace pyinject::tracee
