// Decides whether a process is a CPython that can be activated, and locates its parts.
//
// For example:
//   const auto detector = python::make_detector();
//   const auto found = detector->detect(base::Pid{4711});
//   if (const auto* const refused = std::get_if<python::Refused>(&found)) {
//     std::cerr << python::describe(refused->refusal) << '\n';
//   }
#pragma once

#include "pyinject/base/cancellation.hpp"
#include "pyinject/base/pid.hpp"
#include "pyinject/procfs/file_identity.hpp"
#include "pyinject/python/target.hpp"

#include <memory>
#include <optional>
#include <string>

namespace pyinject::python {

class Detector {
 public:
  virtual ~Detector() = default;
  Detector() = default;
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  // Only reads (process_vm_readv, /proc): nothing in the target is stopped or changed. Every
  // outcome is a value; throws base::Error only if this tool itself is broken. Thread-safe; calls
  // may run concurrently. Files, bytes and steps are bounded, whatever the process does: beyond the
  // bounds, and when CANCELLATION is stopped, returns Reason::kNotExamined.
  [[nodiscard]] virtual Detection detect(base::Pid pid, const base::Cancellation& cancellation) = 0;
  [[nodiscard]] Detection detect(base::Pid pid) { return detect(pid, base::Cancellation::never()); }

  // Whether FILE holds a CPython, from the cache. For callers that get an event for each mapping of
  // each process: one look-up, no system call. nullopt: unknown, ask may_hold_interpreter().
  // Thread-safe.
  [[nodiscard]] virtual std::optional<bool> known_verdict(const procfs::FileIdentity& file) = 0;
  // The same, but opens and reads FILE, which PID has mapped as PATH. Also true if the answer
  // cannot be determined (the file cannot be opened, the process has exited): detect() then
  // decides. Thread-safe.
  [[nodiscard]] virtual bool may_hold_interpreter(base::Pid pid, const procfs::FileIdentity& file,
                                                  const std::string& path,
                                                  const base::Cancellation& cancellation) = 0;
};

enum class Purpose {
  kActivate,
  // Only read the frames (frame_layout.hpp): accepts builds without a trampoline, with the JIT or
  // with another evaluator, and an interpreter that is loaded but not initialized yet. Fills in
  // only those addresses of Target that reading frames needs.
  kObserve,
};

// Caches what it learns about interpreter files (by device, inode and build) for later processes.
[[nodiscard]] std::unique_ptr<Detector> make_detector(Purpose purpose = Purpose::kActivate);

}  // namespace pyinject::python
