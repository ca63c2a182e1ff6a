#include "pyinject/python/reason.hpp"

#include <algorithm>
#include <string>
#include <system_error>

namespace pyinject::python {

namespace {

struct Known {
  Reason reason;
  std::string_view name;
  std::string_view meaning;
  // The usual case: impossible with this interpreter, now or ever.
  std::errc condition = std::errc::not_supported;
};

// In the order of the enum.
constexpr auto kKnown = std::to_array<Known>({
    {Reason::kNoSuchProcess, "no_such_process", "there is no such process",
     std::errc::no_such_process},
    {Reason::kOwnProcess, "own_process", "it is perf-pyinject itself",
     std::errc::operation_not_permitted},
    {Reason::kKernelThread, "kernel_thread", "it is a kernel thread",
     std::errc::operation_not_permitted},
    {Reason::kZombie, "zombie", "it has exited and waits for its parent",
     std::errc::no_such_process},
    {Reason::kNoPermission, "no_permission",
     "reading its memory or attaching to it is not permitted", std::errc::permission_denied},
    {Reason::kTraced, "traced", "a debugger or strace is attached",
     std::errc::device_or_resource_busy},
    {Reason::kExited, "exited", "it has exited", std::errc::no_such_process},
    {Reason::kNotExamined, "not_examined", "it could not be examined within the limits",
     std::errc::timed_out},
    {Reason::kNotPython, "not_python", "it is not a CPython process"},
    {Reason::kPythonTooOld, "python_too_old", "it is older than Python 3.12"},
    {Reason::kNoPerfTrampoline, "no_perf_trampoline", "it was built without the perf trampoline"},
    {Reason::kNoLibpythonSymbols, "no_libpython_symbols", "its dynamic symbols were stripped"},
    {Reason::kPythonTooNew, "python_too_new", "it is newer than this release supports"},
    {Reason::kPreRelease, "pre_release", "it is an alpha or beta release"},
    {Reason::kBadPatchRelease, "bad_patch_release", "the trampoline of this release crashes"},
    {Reason::kFreeThreaded, "free_threaded", "it is a free-threaded build"},
    {Reason::kBrokenTrampoline, "broken_trampoline", "its trampoline was damaged by BOLT"},
    {Reason::kLayoutMismatch, "layout_mismatch", "its memory layout is not that of its version"},
    {Reason::kNotInitialized, "not_initialized", "its interpreter is not initialized yet",
     std::errc::resource_unavailable_try_again},
    {Reason::kFinalizing, "finalizing", "its interpreter is finalizing"},
    {Reason::kJitActive, "jit_active", "its JIT is on"},
    {Reason::kForeignEvaluator, "foreign_evaluator", "another frame evaluator is set (PEP 523)"},
    {Reason::kMainThreadGone, "main_thread_gone", "its main thread has exited"},
    {Reason::kSmallStack, "small_stack", "one of its threads has a stack of less than 1 MiB"},
    {Reason::kUnsafeExit, "unsafe_exit", "daemon threads could crash it at its exit"},
    {Reason::kNoMailboxSpace, "no_mailbox_space", "it has no room for a request"},
    {Reason::kForkedAfterActivation, "forked_after_activation",
     "it was forked by a process that had been activated"},
    {Reason::kActivatedBefore, "activated_before",
     "the program switched its own trampoline off again"},
    {Reason::kOtherSession, "other_session", "another session is recording it",
     std::errc::device_or_resource_busy},
    {Reason::kNoFunctionProbes, "no_function_probes", "its build has no probes at function calls"},
    {Reason::kSeccomp, "seccomp", "a seccomp filter forbids what the trampoline needs",
     std::errc::permission_denied},
    {Reason::kMapDirectory, "map_directory", "its /tmp cannot be written",
     std::errc::permission_denied},
    {Reason::kMapForeign, "map_foreign", "its perf map belongs to another user",
     std::errc::permission_denied},
    {Reason::kMapNotRegular, "map_not_regular", "its perf map is not a regular file",
     std::errc::permission_denied},
    {Reason::kNameNotUtf8, "name_not_utf8",
     "a directory or file of its code has a name that is not UTF-8"},
    {Reason::kResourceLimit, "resource_limit",
     "its limits leave no room for trampolines or for its perf map"},
    {Reason::kStopDeadline, "stop_deadline", "a thread could not be stopped in time",
     std::errc::timed_out},
    {Reason::kDeadline, "deadline", "it reached no safe point in time", std::errc::timed_out},
    {Reason::kActivationFailed, "activation_failed", "the activation failed", std::errc::io_error},
    {Reason::kMapNotWritten, "map_not_written", "it does not write its perf map",
     std::errc::io_error},
});

static_assert(kKnown.size() == kReasonCount);

const Known* find(Reason reason) {
  const auto* const known = std::ranges::find(kKnown, reason, &Known::reason);
  return known == kKnown.end() ? nullptr : known;
}

class Category : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "pyinject"; }

  [[nodiscard]] std::string message(int value) const override {
    const auto reason = static_cast<Reason>(value);
    return std::string{meaning(reason)} + " (" + std::string{python::name(reason)} + ")";
  }

  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    const auto* const known = find(static_cast<Reason>(value));
    return known == nullptr ? std::errc::not_supported : known->condition;
  }
};

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

const std::error_category& pyinject_category() noexcept {
  static const Category category;
  return category;
}

std::error_code make_error_code(Reason reason) noexcept {
  return {static_cast<int>(reason), pyinject_category()};
}

}  // namespace pyinject::python
