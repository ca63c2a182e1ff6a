// What the detector found out about a Python process: a value, valid until the process execs.
//
// For example:
//   const auto found = detector.detect(pid);
//   if (const auto* const python = std::get_if<python::Target>(&found)) {
//     std::cout << python::version_text(*python) << ' ' << python::name(python->state) << '\n';
//   }
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/reason.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pyinject::python {

// PY_VERSION_HEX, decoded.
struct Version {
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  std::uint8_t micro = 0;
  std::uint8_t level = 0;   // 0xa alpha, 0xb beta, 0xc candidate, 0xf final
  std::uint8_t serial = 0;  // of the alpha, beta or candidate
  auto operator<=>(const Version&) const = default;
};

[[nodiscard]] Version version_from_hex(std::uint64_t hex);
[[nodiscard]] std::string to_string(const Version& version);  // "3.14.0", "3.15.0rc1"

enum class TrampolineState {
  kOff,
  kOnByUs,      // our mailbox says so, and the evaluator is the one recorded there
  kOnByItself,  // by -X perf, PYTHONPERFSUPPORT or the program's own call: never touched
};

[[nodiscard]] std::string_view name(TrampolineState state);  // "off", "on by us", "on by itself"

// Addresses in the target, all verified by the detector.
struct Addresses {
  base::RemoteAddress runtime;           // _PyRuntime
  base::RemoteAddress main_interpreter;  // the PyInterpreterState with id 0
  base::RemoteAddress eval_frame;        // of the eval_frame pointer of that interpreter
  base::RemoteAddress run_simple_string;
  base::RemoteAddress add_pending_call;
  base::RemoteAddress gilstate_ensure;
  base::RemoteAddress gilstate_release;
  base::RemoteAddress sem_post;
  base::RemoteAddress sigreturn;  // mov $15,%rax; syscall
  base::RemoteAddress mailbox;    // memory at the end of a page, for the mailbox
};

struct Target {
  base::ProcessId id;
  base::RemoteAddress stack_begin;  // of the first thread: distinguishes program images
  Version version;
  bool has_gil = true;             // false: a free-threaded build that runs without a GIL
  bool untested = false;           // this release was not tested with its version
  std::string interpreter;         // the file that holds the interpreter, as the target names it
  base::RemoteAddress text_begin;  // its executable mapping(s)
  base::RemoteAddress text_end;
  base::LoadBias bias;
  Addresses addresses;
  bool frame_pointers = false;  // most functions keep %rbp: perf record -g gives complete stacks
  TrampolineState state = TrampolineState::kOff;
  base::ProcessId owner;              // kOnByUs: the session that will switch it off; {0, 0}: none
  std::uint32_t owner_namespace = 0;  // the pid namespace of OWNER; 0: unknown
  bool foreign_namespace = false;  // its /tmp is not ours, or its pid differs in its own namespace
  base::Pid inner_pid;             // pid in the target's own pid namespace: names the map file
  std::string map_path;            // "/tmp/perf-INNER.map", as the target sees it
  std::vector<std::string> warnings;  // risks that do not justify a refusal, reported to the user
};

// "3.14.0", "3.14.0 (free-threaded, no GIL)", "3.16.0a1 (untested version)".
[[nodiscard]] std::string version_text(const Target& target);

// State of the session that switched a target on.
enum class OwnerState {
  kNone,     // no session: `activate`, or the trampoline is not on by us
  kLives,    // it switches the target off when it ends
  kGone,     // it has provably exited: no process switches the target off
  kUnknown,  // it is in a pid namespace that is not visible from here
};
[[nodiscard]] std::string_view name(OwnerState state);  // "none", "running", "gone", "unknown"
// Reads /proc. Throws base::Error on failure.
[[nodiscard]] OwnerState owner_state(const Target& target);
// The same for OWNER, a pid in PID_NAMESPACE (0: unknown). TARGET_IN_OWN: the target has the same
// pid in its own pid namespace as in this process's.
[[nodiscard]] OwnerState owner_state(const base::ProcessId& owner, std::uint32_t pid_namespace,
                                     bool target_in_own);
// Inode number of this process's pid namespace; 0: unknown.
[[nodiscard]] std::uint32_t own_pid_namespace();

// The result of detecting one pid: a target that is ready (or already on), or the reason why not
// together with what was known before the refusal (version 0.0.0: not even that).
struct Refused {
  Refusal refusal;
  Version version;
  std::string interpreter;
  std::optional<bool> frame_pointers;
  // kNotInitialized: address of the int that becomes 1 when the interpreter is initialized. Unset
  // if parts of the interpreter are not loaded yet.
  std::optional<base::RemoteAddress> initialized = {};
};
using Detection = std::variant<Target, Refused>;

}  // namespace pyinject::python
