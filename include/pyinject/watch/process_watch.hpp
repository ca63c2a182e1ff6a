// Tells of processes that start, exec, map programs and end, as it happens, so that nobody has to
// look for them. Where a process is in Python's eyes is none of its business.
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
  kForked,    // a process was born, from `parent`
  kExec,      // it runs another program now: what was known of its memory is void; `path`: the
              // name of its main thread
  kNamed,     // its main thread has another name (prctl, /proc/PID/comm); `path`: that name
  kMapped,    // it has mapped executable pages of a file
  kWritten,   // what report_write() was asked for has come about; once
  kExited,    // its main thread has ended (a kExec may follow, by another thread of it)
  kAppeared,  // it is there, or has changed, and it is not known since when or how: look at it
              // whole
};

using procfs::FileIdentity;

struct ProcessEvent {
  Change change{};
  base::Pid pid;
  base::Pid parent = {};   // kForked
  FileIdentity file = {};  // kMapped
  std::string path = {};   // kMapped, kNamed, kExec; as the process sees it, not to be trusted
};

// Of one thread only.
class ProcessWatch {
 public:
  virtual ~ProcessWatch() = default;
  ProcessWatch() = default;
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  // Readable (poll(2)) when take() may have something; stays the same.
  [[nodiscard]] virtual int fd() const = 0;

  // What has happened since the last call, in order of time as far as it is known; does not wait.
  // Threads' births and ends are left out. When records were lost each process that is there
  // is reported with kAppeared. Throws base::SystemError when the watch is broken for good.
  [[nodiscard]] virtual std::vector<ProcessEvent> take() = 0;

  // kWritten is to come when a thread of PID writes to the four bytes at ADDRESS (aligned) in its
  // memory. False: it cannot be known (no hardware breakpoints, no right, no such process); the
  // caller then looks again from time to time. Ends with kWritten, kExec or the end of the process.
  // Not told of: what was written before (look again behind this call), the kernel's writes, and
  // those of threads that are born later. kWritten may also come when a thread has ended.
  [[nodiscard]] virtual bool report_write(base::Pid pid, std::uint64_t address) = 0;

  // "perf events" or "/proc"; for messages.
  [[nodiscard]] virtual std::string_view name() const = 0;
};

// By perf's side-band records (perf_event_open(2): a dummy event on each processor), through
// libperf. Null: not built with libperf, or the kernel does not let us (needs
// CAP_PERFMON or kernel.perf_event_paranoid <= 0); WHY says which.
[[nodiscard]] std::unique_ptr<ProcessWatch> watch_by_perf_events(std::string& why);

// By looking through /proc twenty times a second: knows births, ends, new programs and names; no
// mappings, so kAppeared comes behind each birth and exec, and once more at the next look; misses
// what lives for less than 50 ms. What is older than a second is looked at once a second.
[[nodiscard]] std::unique_ptr<ProcessWatch> watch_by_procfs();

// The first that works; says on LOGGER (debug) which, and why not the better one.
[[nodiscard]] std::unique_ptr<ProcessWatch> watch_processes(base::Logger& logger);

}  // namespace pyinject::watch
