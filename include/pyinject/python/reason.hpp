// Why a process cannot be (or was not) activated. Each has one name, used by messages, by `status`
// and by the counters, so that operators can compare.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace pyinject::python {

enum class Reason {
  // About the process.
  kNoSuchProcess,
  kOwnProcess,
  kKernelThread,
  kZombie,
  kNoPermission,
  kTraced,
  kExited,
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
  kNoMailboxSpace,
  kForkedAfterActivation,
  kActivatedBefore,
  kOtherSession,
  // About the process's surroundings.
  kSeccomp,
  kMapDirectory,
  kMapForeign,
  kMapNotRegular,
  // Found out by trying.
  kStopDeadline,
  kDeadline,
  kActivationFailed,
  kMapNotWritten,
};

// Every reason, in the order above: for counters and documentation.
[[nodiscard]] const std::array<Reason, 35>& all_reasons();

// The stable name in lower_case_with_underscores, e.g. "python_too_old".
[[nodiscard]] std::string_view name(Reason reason);

// The process is no more.
[[nodiscard]] constexpr bool has_gone(Reason reason) {
  return reason == Reason::kExited || reason == Reason::kNoSuchProcess || reason == Reason::kZombie;
}

// A refusal: what was found (with values) and what the user can do. Both are complete phrases
// without a final period; remedy may be empty.
struct Refusal {
  Reason reason{};
  std::string found;
  std::string remedy;
};

// "FOUND (reason_name): REMEDY" for a message that already says which pid.
[[nodiscard]] std::string describe(const Refusal& refusal);

}  // namespace pyinject::python
