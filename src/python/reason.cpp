#include "pyinject/python/reason.hpp"

namespace pyinject::python {

const std::array<Reason, 35>& all_reasons() {
  static constexpr std::array<Reason, 35> kAll = {
      Reason::kNoSuchProcess,
      Reason::kOwnProcess,
      Reason::kKernelThread,
      Reason::kZombie,
      Reason::kNoPermission,
      Reason::kTraced,
      Reason::kExited,
      Reason::kNotPython,
      Reason::kPythonTooOld,
      Reason::kNoPerfTrampoline,
      Reason::kNoLibpythonSymbols,
      Reason::kPythonTooNew,
      Reason::kPreRelease,
      Reason::kBadPatchRelease,
      Reason::kFreeThreaded,
      Reason::kBrokenTrampoline,
      Reason::kLayoutMismatch,
      Reason::kNotInitialized,
      Reason::kFinalizing,
      Reason::kJitActive,
      Reason::kForeignEvaluator,
      Reason::kMainThreadGone,
      Reason::kSmallStack,
      Reason::kNoMailboxSpace,
      Reason::kForkedAfterActivation,
      Reason::kActivatedBefore,
      Reason::kOtherSession,
      Reason::kSeccomp,
      Reason::kMapDirectory,
      Reason::kMapForeign,
      Reason::kMapNotRegular,
      Reason::kStopDeadline,
      Reason::kDeadline,
      Reason::kActivationFailed,
      Reason::kMapNotWritten,
  };
  return kAll;
}

std::string_view name(Reason reason) {
  switch (reason) {
    case Reason::kNoSuchProcess:
      return "no_such_process";
    case Reason::kOwnProcess:
      return "own_process";
    case Reason::kKernelThread:
      return "kernel_thread";
    case Reason::kZombie:
      return "zombie";
    case Reason::kNoPermission:
      return "no_permission";
    case Reason::kTraced:
      return "traced";
    case Reason::kExited:
      return "exited";
    case Reason::kNotPython:
      return "not_python";
    case Reason::kPythonTooOld:
      return "python_too_old";
    case Reason::kNoPerfTrampoline:
      return "no_perf_trampoline";
    case Reason::kNoLibpythonSymbols:
      return "no_libpython_symbols";
    case Reason::kPythonTooNew:
      return "python_too_new";
    case Reason::kPreRelease:
      return "pre_release";
    case Reason::kBadPatchRelease:
      return "bad_patch_release";
    case Reason::kFreeThreaded:
      return "free_threaded";
    case Reason::kBrokenTrampoline:
      return "broken_trampoline";
    case Reason::kLayoutMismatch:
      return "layout_mismatch";
    case Reason::kNotInitialized:
      return "not_initialized";
    case Reason::kFinalizing:
      return "finalizing";
    case Reason::kJitActive:
      return "jit_active";
    case Reason::kForeignEvaluator:
      return "foreign_evaluator";
    case Reason::kMainThreadGone:
      return "main_thread_gone";
    case Reason::kSmallStack:
      return "small_stack";
    case Reason::kNoMailboxSpace:
      return "no_mailbox_space";
    case Reason::kForkedAfterActivation:
      return "forked_after_activation";
    case Reason::kActivatedBefore:
      return "activated_before";
    case Reason::kOtherSession:
      return "other_session";
    case Reason::kSeccomp:
      return "seccomp";
    case Reason::kMapDirectory:
      return "map_directory";
    case Reason::kMapForeign:
      return "map_foreign";
    case Reason::kMapNotRegular:
      return "map_not_regular";
    case Reason::kStopDeadline:
      return "stop_deadline";
    case Reason::kDeadline:
      return "deadline";
    case Reason::kActivationFailed:
      return "activation_failed";
    case Reason::kMapNotWritten:
      return "map_not_written";
  }
  return "unknown";
}

std::string describe(const Refusal& refusal) {
  std::string text = refusal.found + " (" + std::string{name(refusal.reason)} + ")";
  if (!refusal.remedy.empty()) {
    text += ": " + refusal.remedy;
  }
  return text;
}

}  // namespace pyinject::python
