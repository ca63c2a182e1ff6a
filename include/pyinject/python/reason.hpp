// Reasons why a process cannot be (or was not) activated. Each has one name, used in messages, by
// `status` and for the counters.
//
// For example:
//   const std::error_code code = python::Reason::kNoPermission;
//   if (code == std::errc::permission_denied) {
//     std::cerr << code.message() << '\n';
//   }
#pragma once

#include "pyinject/version.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

namespace pyinject::python {

// Also an error code: std::error_code{Reason::kTraced}. No reason is 0, because 0 means success in
// an error code. The numbers may change between releases, the names do not.
enum class Reason {
  // About the process.
  kNoSuchProcess = 1,
  kOwnProcess,
  kKernelThread,
  kZombie,
  kNoPermission,
  kTraced,
  kExited,
  kNotExamined,
  // About the interpreter. The first four names are those of the field's reference package.
  kNotPython,
  kPythonTooOld,
  kNoPerfTrampoline,
  kNoLibpythonSymbols,
  kPythonTooNew,
  kPreRelease,
  kBadPatchRelease,
  kFreeThreaded,
  kBrokenTrampoline,
  kLayoutMismatch,
  kNotInitialized,
  kFinalizing,
  kJitActive,
  kForeignEvaluator,
  kMainThreadGone,
  kSmallStack,
  kUnsafeExit,
  kNoMailboxSpace,
  kForkedAfterActivation,
  kActivatedBefore,
  kOtherSession,
  kNoFunctionProbes,  // of `record --functions` only
  // About the process's surroundings.
  kSeccomp,
  kMapDirectory,
  kMapForeign,
  kMapNotRegular,
  kNameNotUtf8,
  kResourceLimit,
  // Found by trying.
  kStopDeadline,
  kDeadline,
  kActivationFailed,
  kMapNotWritten,  // the last one: kReasonCount
};
inline constexpr std::size_t kReasonCount = static_cast<std::size_t>(Reason::kMapNotWritten);

// Every reason, in the order above: for counters and documentation.
[[nodiscard]] const std::array<Reason, kReasonCount>& all_reasons();

// The stable name in lower_case_with_underscores, e.g. "python_too_old".
[[nodiscard]] std::string_view name(Reason reason);
// A phrase for people, e.g. "it is older than Python 3.12".
[[nodiscard]] std::string_view meaning(Reason reason);

// The category of all Reason codes: name() is "pyinject", message() is "MEANING (reason_name)".
// They compare equal to the standard conditions: kNoPermission to std::errc::permission_denied,
// kNoSuchProcess and kExited to no_such_process, kDeadline to timed_out, whatever this interpreter
// cannot do to not_supported, and so on.
[[nodiscard]] const std::error_category& pyinject_category() noexcept;
[[nodiscard]] std::error_code make_error_code(Reason reason) noexcept;

// The process no longer exists.
[[nodiscard]] constexpr bool has_gone(Reason reason) {
  return reason == Reason::kExited || reason == Reason::kNoSuchProcess || reason == Reason::kZombie;
}

// A refusal: what was found (with values) and what the user can do. Both are complete phrases
// without a final period; `remedy` may be empty.
struct Refusal {
  Reason reason = Reason::kActivationFailed;
  std::string found;
  std::string remedy;
};

// "FOUND (reason_name): REMEDY", for a message that already names the pid.
[[nodiscard]] std::string describe(const Refusal& refusal);

}  // namespace pyinject::python

template <>
struct std::is_error_code_enum<pyinject::python::Reason> : std::true_type {};
