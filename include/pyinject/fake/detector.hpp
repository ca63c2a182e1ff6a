// A test double: the test decides what each process is.
//
// For example:
//   fake::Detector processes;
//   processes.refusals[base::Pid{12}] = python::Reason::kPythonTooOld;
//   const auto found = processes.detect(base::Pid{12});  // a Refused
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/procfs/file_identity.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/python/target.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace pyinject::fake {

// Without a script every pid is a CPython that is off, even if no such process exists; an existing
// process gets its real start time. Fill in the script before calling detect().
class Detector : public python::Detector {
 public:
  using python::Detector::detect;
  // Thread-safe.
  python::Detection detect(base::Pid pid, const base::Cancellation& cancellation) override;

  std::optional<bool> known_verdict(const procfs::FileIdentity& file) override;  // always nullopt
  // True if PATH contains "python".
  bool may_hold_interpreter(base::Pid pid, const procfs::FileIdentity& file,
                            const std::string& path,
                            const base::Cancellation& cancellation) override;

  // NOLINTBEGIN(cppcoreguidelines-non-private-member-variables-in-classes): a script
  std::map<base::Pid, python::Reason> refusals;         // these are refused
  std::map<base::Pid, python::TrampolineState> states;  // the others are off
  std::map<base::Pid, base::ProcessId> owners;          // sessions that switched them on
  std::optional<std::set<base::Pid>> only;              // set: all others are no Python
  python::Version version{.major = 3, .minor = 15, .micro = 2, .level = 0xf, .serial = 0};
  bool frame_pointers = true;
  // NOLINTEND(cppcoreguidelines-non-private-member-variables-in-classes)
};

}  // namespace pyinject::fake
