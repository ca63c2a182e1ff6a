// A snapshot of a process with three threads.
#pragma once

#include "pyinject/inspect/snapshot.hpp"

#include <sys/syscall.h>

namespace pyinject::test {

inline inspect::ProcessSnapshot made_snapshot() {
  using namespace inspect;  // NOLINT(google-build-using-namespace): a table of its types
  ProcessSnapshot process;
  process.pid = base::Pid{10};
  process.user = "www-data";
  process.command = "python3 app.py";
  process.version = python::Version{.major = 3, .minor = 14, .micro = 0, .level = 0xf, .serial = 0};
  process.version_text = "3.14.0";
  process.interpreter = "/usr/bin/python3";
  ThreadSnapshot main;
  main.tid = base::Tid{10};
  main.name = "python3";
  main.activity = Activity::kSleeping;
  main.call = DescribedCall{.number = SYS_read,
                            .name = "read",
                            .arguments = {"fd 3: /tmp/a\x1b[31m"},
                            .all_arguments = false,
                            .descriptor = 3,
                            .file = "/tmp/a\x1b[31m"};
  main.kernel = {"anon_pipe_read", "vfs_read"};
  main.python = true;
  main.python_id = 77;
  main.interpreters = {0};
  main.gil = sample::Gil::kNone;
  main.frames = {{.function = "wait", .file = "/srv/app.py", .line = 7},
                 {.function = "<module>", .file = "/srv/app.py", .line = 0}};
  ThreadSnapshot native;
  native.tid = base::Tid{11};
  native.name = "blas";
  native.activity = Activity::kSleeping;
  ThreadSnapshot worker;
  worker.tid = base::Tid{12};
  worker.name = "worker";
  worker.activity = Activity::kSleeping;
  worker.python = true;
  worker.interpreters = {1};
  worker.gil = sample::Gil::kWaitedFor;
  worker.gil_holder = base::Tid{10};
  worker.frames = {{.function = "work", .file = "/srv/app.py", .line = 3}};
  worker.settled = false;
  worker.complete = false;
  process.threads = {main, native, worker};
  return process;
}

}  // namespace pyinject::test
