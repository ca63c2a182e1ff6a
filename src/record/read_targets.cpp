#include "record/read_targets.hpp"

#include "base/clock.hpp"
#include "base/format.hpp"
#include "procfs/stat.hpp"
#include "pyinject/python/evaluator.hpp"
#include "python/layout/frame_layout.hpp"

#include <utility>
#include <variant>

namespace pyinject::record {

namespace {

using python::Reason;
using python::Refusal;

// Whether TARGET still runs the program that was examined.
bool runs_still(const python::Target& target) {
  const auto stat = procfs::read_stat(target.id.pid);
  return stat && stat->stack_begin == target.stack_begin &&
         procfs::read_process_id(target.id.pid) == target.id;
}

Refusal gone() {
  return {.reason = Reason::kExited,
          .found = "the process exited or runs another program now",
          .remedy = {}};
}

}  // namespace

std::optional<Refusal> ReadTargets::add(const python::Target& target) {
  auto refusal = read_from(target);
  // An exec removes the target from the sampler; add() may have come after that exec.
  if (!runs_still(target)) {
    sampler_.remove(target.id.pid);
    return gone();
  }
  return refusal;
}

std::optional<Refusal> ReadTargets::read_from(const python::Target& target) {
  const auto layout = python::frame_layout(target);
  if (const auto* const why = std::get_if<std::string>(&layout)) {
    return Refusal{.reason = Reason::kLayoutMismatch, .found = *why, .remedy = {}};
  }
  weave::Interpreter interpreter{
      .evaluator = {},  // also without ranges: it is a Python
      .frame_pointers = target.frame_pointers,
      .seen = clock_ ? std::optional{base::now_by(*clock_)} : std::nullopt};
  // Otherwise that may be a time of the program that it has executed since.
  if (procfs::runs_another(target.id, target.stack_begin)) {
    return gone();
  }
  const auto& frames = std::get<python::FrameLayout>(layout);
  if (flags_.tasks && frames.running_task == 0 && !frames.tasks_later) {
    warn_without_tasks(target);
  }
  if (flags_.gil && !target.has_gil) {
    warn_without_gil(target);
  }
  const auto added = sampler_.add(target.id.pid, frames);
  if (native_ != nullptr && added == bpf::Sampler::Added::kYes) {
    native_->add(target.id.pid);
  }
  // Only now, when its frames are already read: this takes some milliseconds.
  for (const auto& range : python::evaluator_ranges(target)) {
    interpreter.evaluator.push_back({.begin = range.begin.value(), .end = range.end.value()});
  }
  {
    const auto pid = static_cast<std::uint32_t>(target.id.pid.value());
    const std::lock_guard lock{mutex_};
    interpreters_[pid].push_back(std::move(interpreter));
  }
  switch (added) {
    case bpf::Sampler::Added::kYes:
      return std::nullopt;
    case bpf::Sampler::Added::kUnfit:
      return Refusal{.reason = Reason::kLayoutMismatch,
                     .found = "its frames or code objects are too large",
                     .remedy = "use --engine trampoline"};
    case bpf::Sampler::Added::kFull:
      return Refusal{.reason = Reason::kActivationFailed,
                     .found = "too many processes are recorded already",
                     .remedy = "record fewer"};
  }
  return std::nullopt;
}

// Once per version: a master may have hundreds of workers.
void ReadTargets::warn_without_tasks(const python::Target& target) {
  const auto version = python::to_string(target.version);
  const std::lock_guard lock{mutex_};
  if (without_tasks_.insert(version).second) {
    logger_.warning(
        "pid {}: --tasks has no effect on Python {}: the names of asyncio tasks can be read on "
        "3.14 and later",
        target.id.pid.value(), version);
  }
}

void ReadTargets::warn_without_gil(const python::Target& target) {
  const std::lock_guard lock{mutex_};
  if (without_gil_.insert(python::to_string(target.version)).second) {
    logger_.warning("pid {}: --gil has no effect on Python {}", target.id.pid.value(),
                    python::version_text(target));
  }
}

weave::Interpreters ReadTargets::interpreters() {
  const std::lock_guard lock{mutex_};
  return interpreters_;
}

}  // namespace pyinject::record
