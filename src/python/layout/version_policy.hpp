// Which versions are safe to activate, and how to classify an evaluator.
#pragma once

#include "pyinject/base/remote_address.hpp"
#include "pyinject/python/detector.hpp"
#include "pyinject/python/reason.hpp"
#include "pyinject/python/target.hpp"
#include "python/examine/mailbox.hpp"

#include <optional>

namespace pyinject::python {

// nullopt: activation (or observation) is permitted.
[[nodiscard]] std::optional<Refusal> refuse_version(const Version& version,
                                                    Purpose purpose = Purpose::kActivate);

// Its exit unmaps the trampolines while daemon threads may be inside (cpython gh-143228).
[[nodiscard]] bool unmaps_used_arenas(const Version& version);
// Each activation registers one more code watcher, which stays.
[[nodiscard]] bool adds_code_watchers(const Version& version);
// With the trampoline, a name that is not UTF-8 raises errors in the program (cpython gh-156114).
[[nodiscard]] bool fails_on_odd_names(const Version& version);
// A second activation in a process, or in a child that it forks, crashes the process (cpython
// gh-146522).
[[nodiscard]] bool activates_once(const Version& version);
// It checks the C stack itself and raises RecursionError.
[[nodiscard]] bool checks_c_stack(const Version& version);

// EVALUATOR: the value of eval_frame. nullopt: a foreign evaluator (PEP 523). The trampoline's
// evaluator is a static function of CPython, so it is in [TEXT_BEGIN, TEXT_END).
[[nodiscard]] std::optional<TrampolineState> classify_evaluator(
    base::RemoteAddress evaluator, const std::optional<Mailbox>& mailbox,
    base::RemoteAddress text_begin, base::RemoteAddress text_end);

}  // namespace pyinject::python
