// Is this process a CPython we can activate, and where is what in it?
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

  // Reads only (process_vm_readv, /proc): nothing in the target is stopped or changed. Every
  // outcome is a value; throws base::Error only when this tool itself is broken. Of any thread,
  // several at a time. Bounded in files, bytes and steps, whatever the process does: beyond those,
  // and when CANCELLATION is stopped, the answer is Reason::kNotExamined.
  [[nodiscard]] virtual Detection detect(base::Pid pid, const base::Cancellation& cancellation) = 0;
  [[nodiscard]] Detection detect(base::Pid pid) { return detect(pid, base::Cancellation::never()); }

  // Is a CPython in FILE? For callers that are told of each mapping of each process: one look-up,
  // no system call. nullopt: may_hold_interpreter() finds out. Of any thread.
  [[nodiscard]] virtual std::optional<bool> known_verdict(const procfs::FileIdentity& file) = 0;
  // The same of FILE, which PID has mapped and calls PATH; it is opened and read. True also where
  // it cannot be known (the file cannot be opened, the process has gone): detect() tells. Of any
  // thread.
  [[nodiscard]] virtual bool may_hold_interpreter(base::Pid pid, const procfs::FileIdentity& file,
                                                  const std::string& path,
                                                  const base::Cancellation& cancellation) = 0;
};

enum class Purpose {
  kActivate,
  // Only the frames are to be read (frame_layout.hpp): builds without a trampoline, with the JIT or
  // another evaluator are fine, and so is one that is not initialised yet, when it has been loaded.
  // Of Target's addresses only what frames take is filled in.
  kObserve,
};

// Keeps what it learned of interpreter files (by device, inode and build) for the next process.
[[nodiscard]] std::unique_ptr<Detector> make_detector(Purpose purpose = Purpose::kActivate);

}  // namespace pyinject::python
