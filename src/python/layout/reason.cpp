#include "pyinject/python/reason.hpp"

#include <algorithm>

namespace pyinject::python {

namespace {

struct Known {
  Reason reason;
  std::string_view name;
  std::string_view meaning;
};

// In the order of the enum.
constexpr auto kKnown = std::to_array<Known>({
    {Reason::kNoSuchProcess, "no_such_process", "there is no such process"},
    {Reason::kOwnProcess, "own_process", "it is this tool itself"},
    {Reason::kKernelThread, "kernel_thread", "it is a thread of the kernel"},
    {Reason::kZombie, "zombie", "it has ended and waits for its parent"},
    {Reason::kNoPermission, "no_permission", "it may not be looked into or attached to"},
    {Reason::kTraced, "traced", "a debugger or strace is attached"},
    {Reason::kExited, "exited", "it has exited meanwhile"},
    {Reason::kNotExamined, "not_examined", "it could not be examined within the limits"},
    {Reason::kNotPython, "not_python", "it is no CPython"},
    {Reason::kPythonTooOld, "python_too_old", "it is older than Python 3.12"},
    {Reason::kNoPerfTrampoline, "no_perf_trampoline", "it was built without the perf trampoline"},
    {Reason::kNoLibpythonSymbols, "no_libpython_symbols", "its dynamic symbols were stripped"},
    {Reason::kPythonTooNew, "python_too_new", "it is newer than this release knows"},
    {Reason::kPreRelease, "pre_release", "it is an alpha or beta release"},
    {Reason::kBadPatchRelease, "bad_patch_release", "the trampoline of this release crashes"},
    {Reason::kFreeThreaded, "free_threaded", "it is a free-threaded build"},
    {Reason::kBrokenTrampoline, "broken_trampoline", "its trampoline was damaged by BOLT"},
    {Reason::kLayoutMismatch, "layout_mismatch", "a value is not where this version has it"},
    {Reason::kNotInitialized, "not_initialized", "its interpreter is not initialized yet"},
    {Reason::kFinalizing, "finalizing", "its interpreter is finalizing"},
    {Reason::kJitActive, "jit_active", "its JIT is on"},
    {Reason::kForeignEvaluator, "foreign_evaluator", "another frame evaluator is set (PEP 523)"},
    {Reason::kMainThreadGone, "main_thread_gone", "its main thread has ended"},
    {Reason::kSmallStack, "small_stack", "a thread has a stack of less than 1 MiB"},
    {Reason::kUnsafeExit, "unsafe_exit", "daemon threads could crash it at its exit"},
    {Reason::kNoMailboxSpace, "no_mailbox_space", "no dynamically linked glibc is in it"},
    {Reason::kForkedAfterActivation, "forked_after_activation",
     "it was forked by a process that had been activated"},
    {Reason::kActivatedBefore, "activated_before",
     "the program switched its own trampoline off again"},
    {Reason::kOtherSession, "other_session", "another session is recording it"},
    {Reason::kNoFunctionProbes, "no_function_probes", "its build has no probes at function calls"},
    {Reason::kSeccomp, "seccomp", "a seccomp filter forbids what the trampoline needs"},
    {Reason::kMapDirectory, "map_directory", "its /tmp cannot be written"},
    {Reason::kMapForeign, "map_foreign", "its perf map belongs to somebody else"},
    {Reason::kMapNotRegular, "map_not_regular", "its perf map is not a regular file"},
    {Reason::kStopDeadline, "stop_deadline", "a thread could not be stopped in time"},
    {Reason::kDeadline, "deadline", "it came to no safe point in time"},
    {Reason::kActivationFailed, "activation_failed", "the activation failed"},
    {Reason::kMapNotWritten, "map_not_written", "it does not write its perf map"},
});

static_assert(kKnown.size() == kReasonCount);

const Known* find(Reason reason) {
  const auto* const known = std::ranges::find(kKnown, reason, &Known::reason);
  return known == kKnown.end() ? nullptr : known;
}

}  // namespace

const std::array<Reason, kReasonCount>& all_reasons() {
  static constexpr auto kAll = [] {
    std::array<Reason, kReasonCount> all{};
    std::ranges::transform(kKnown, all.begin(), &Known::reason);
    return all;
  }();
  return kAll;
}

std::string_view name(Reason reason) {
  const auto* const known = find(reason);
  return known == nullptr ? "unknown" : known->name;
}

std::string_view meaning(Reason reason) {
  const auto* const known = find(reason);
  return known == nullptr ? "unknown" : known->meaning;
}

std::string describe(const Refusal& refusal) {
  std::string text = refusal.found + " (" + std::string{name(refusal.reason)} + ")";
  if (!refusal.remedy.empty()) {
    text += ": " + refusal.remedy;
  }
  return text;
}

}  // namespace pyinject::python
