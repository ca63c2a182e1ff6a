// Reports processes that start, exec, map programs and exit, as it happens, to avoid polling. Knows
// nothing about Python.
//
// For example:
//   const auto processes = watch::watch_processes(logger);
//   pollfd wait{.fd = processes->fd(), .events = POLLIN, .revents = 0};
//   (void)::poll(&wait, 1, -1);
//   for (const auto& event : processes->take()) {
//     if (event.change == watch::Change::kExited) {
//       (void)manager.forget(event.pid);
//     }
//   }
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/procfs/file_identity.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::watch {

enum class Change {
  kForked,  // a process started, forked by `parent`
  kExec,    // it exec'ed: what was known of its memory is void; `path`: the name of its main thread
  kNamed,   // its main thread was renamed (prctl, /proc/PID/comm); `path`: the new name
  kMapped,  // it mapped executable pages of a file
  kGeneratedCode,  // it made memory without a file executable, such as a JIT; only by perf events
  kWritten,        // the write that report_write() was asked for has happened; sent once
  kExited,         // its main thread has exited (a kExec by another thread may follow)
  kAppeared,       // it exists or has changed, unknown when and how: examine it completely
};

using procfs::FileIdentity;

struct ProcessEvent {
  Change change{};
  base::Pid pid;
  base::Pid parent = {};   // kForked
  FileIdentity file = {};  // kMapped
  std::string path = {};   // kMapped, kNamed, kExec; as the process sees it, not to be trusted
};

// Use it from one thread only.
class ProcessWatch {
 public:
  virtual ~ProcessWatch() = default;
  ProcessWatch() = default;
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // Readable (poll(2)) if take() may return something; never changes.
  [[nodiscard]] virtual int fd() const = 0;

  // Returns the events since the last call, ordered by time as far as known; does not wait. Starts
  // and exits of threads are omitted. If records were lost, reports each existing process with
  // kAppeared. Throws base::SystemError if the watch is permanently broken.
  [[nodiscard]] virtual std::vector<ProcessEvent> take() = 0;

  // Requests a kWritten event for when a thread of PID writes to the four bytes at ADDRESS
  // (aligned) in its memory. False: impossible (no hardware breakpoints, no permission, no such
  // process); the caller must poll instead. Ends with kWritten, kExec or the exit of the process.
  // Not reported: earlier writes (check again after this call), writes by the kernel, and writes by
  // threads that start later. kWritten may also come when a thread has exited.
  [[nodiscard]] virtual bool report_write(base::Pid pid, std::uint64_t address) = 0;

  // "perf events" or "/proc"; for messages.
  [[nodiscard]] virtual std::string_view name() const = 0;
};

// Uses perf's side-band records (perf_event_open(2): a dummy event on each processor) through
// libperf. Null: built without libperf, or not permitted by the kernel (needs CAP_PERFMON or
// kernel.perf_event_paranoid <= 0); WHY says which.
[[nodiscard]] std::unique_ptr<ProcessWatch> watch_by_perf_events(std::string& why);

// Scans /proc twenty times a second: detects starts, exits, execs and renames, but no mappings, so
// kAppeared follows each start and exec, and comes once more at the next scan. Misses processes
// that live for less than 50 ms. Checks processes older than a second once a second.
[[nodiscard]] std::unique_ptr<ProcessWatch> watch_by_procfs();

// The first watch that works; logs (debug) which one, and why not the better one.
[[nodiscard]] std::unique_ptr<ProcessWatch> watch_processes(base::Logger& logger);

}  // namespace pyinject::watch
