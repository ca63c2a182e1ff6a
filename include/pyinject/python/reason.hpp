// Why a process cannot be (or was not) activated. Each has one name, used by messages, by `status`
// and by the counters, so that operators can compare.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

namespace pyinject::python {

// Also an error code: std::error_code{Reason::kTraced}. 0 is none of them, since a code of 0 is no
// error; the numbers may change from release to release, the names do not.
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
  // Found out by trying.
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

// Of all codes that are a Reason: name() is "pyinject"; message() "MEANING (reason_name)". They
// equal the standard's conditions: kNoPermission std::errc::permission_denied, kNoSuchProcess and
// kExited no_such_process, kDeadline timed_out, what this interpreter cannot do not_supported, and
// so on.
[[nodiscard]] const std::error_category& pyinject_category() noexcept;
[[nodiscard]] std::error_code make_error_code(Reason reason) noexcept;

// The process is no more.
[[nodiscard]] constexpr bool has_gone(Reason reason) {
  return reason == Reason::kExited || reason == Reason::kNoSuchProcess || reason == Reason::kZombie;
}

// A refusal: what was found (with values) and what the user can do. Both are complete phrases
// without a final period; remedy may be empty.
struct Refusal {
  Reason reason = Reason::kActivationFailed;
  std::string found;
  std::string remedy;
};

// "FOUND (reason_name): REMEDY" for a message that already says which pid.
[[nodiscard]] std::string describe(const Refusal& refusal);

}  // namespace pyinject::python

template <>
struct std::is_error_code_enum<pyinject::python::Reason> : std::true_type {};
