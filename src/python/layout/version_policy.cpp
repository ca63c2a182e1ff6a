#include "python/layout/version_policy.hpp"

#include "python/layout/layout_facts.hpp"

#include <fmt/format.h>

namespace pyinject::python {

std::optional<Refusal> refuse_version(const Version& version, Purpose purpose) {
  const auto text = to_string(version);
  const auto oldest = all_layout_facts().front().minor;
  const auto newest = all_layout_facts().back().minor;
  if (version.major < 3 || (version.major == 3 && version.minor < oldest)) {
    return Refusal{.reason = Reason::kPythonTooOld,
                   .found = "it is Python " + text,
                   .remedy = "the perf trampoline came with Python 3.12"};
  }
  if (purpose != Purpose::kActivate && version.major == 3) {
    return std::nullopt;  // its own offsets tell whether it can be read: parse_layout()
  }
  if (version.major > 3 || version.minor > newest) {
    return Refusal{.reason = Reason::kPythonTooNew,
                   .found = "it is Python " + text,
                   .remedy = fmt::format("record --engine bpf: this release of perf-pyinject can "
                                         "switch on the trampoline of 3.{} to 3.{}",
                                         oldest, newest)};
  }
  if (version.level != 0xf && version.level != 0xc) {
    return Refusal{.reason = Reason::kPreRelease,
                   .found = "it is Python " + text,
                   .remedy =
                       "record --engine bpf, or use a release: layouts change until the "
                       "release candidates"};
  }
  const auto* const facts = layout_facts(version);
  if (facts == nullptr) {
    return std::nullopt;
  }
  for (const auto& bad : facts->bad_releases) {
    if (version.micro == bad.micro) {
      return Refusal{.reason = Reason::kBadPatchRelease,
                     .found = fmt::format("it is Python {}: {}", text, bad.why),
                     .remedy = fmt::format("use {}", bad.use)};
    }
  }
  return std::nullopt;
}

bool unmaps_used_arenas(const Version& version) {
  const auto* const facts = layout_facts(version);
  return facts != nullptr && facts->unmaps_used_arenas.contains(version.micro);
}

bool adds_code_watchers(const Version& version) {
  const auto* const facts = layout_facts(version);
  return facts != nullptr && facts->adds_code_watchers.contains(version.micro);
}

bool fails_on_odd_names(const Version& version) {
  const auto* const facts = layout_facts(version);
  return facts != nullptr && facts->fails_on_odd_names.contains(version.micro);
}

bool activates_once(const Version& version) {
  const auto* const facts = layout_facts(version);
  return facts != nullptr && facts->activates_once;
}

bool checks_c_stack(const Version& version) {
  const auto* const facts = layout_facts(version);
  return facts != nullptr && facts->checks_c_stack;
}

std::optional<TrampolineState> classify_evaluator(base::RemoteAddress evaluator,
                                                  const std::optional<Mailbox>& mailbox,
                                                  base::RemoteAddress text_begin,
                                                  base::RemoteAddress text_end) {
  if (evaluator.is_null()) {
    return TrampolineState::kOff;
  }
  if (evaluator < text_begin || evaluator >= text_end) {
    return std::nullopt;
  }
  // No evaluator stored yet: the tool exited between the request and its effect. A request that was
  // withdrawn and settled (payload blanked) has no effect: the program itself has switched on.
  const bool ours =
      mailbox && (mailbox->evaluator == evaluator.value() ||
                  (mailbox->evaluator == 0 && mailbox->requested > 0 &&
                   (mailbox->payload[0] != '\0' || mailbox->outcome == kWithdrawing)));
  return ours ? TrampolineState::kOnByUs : TrampolineState::kOnByItself;
}

}  // namespace pyinject::python
