#include "record/recorded_output.hpp"

#include "base/format.hpp"
#include "base/text.hpp"
#include "procfs/own_rights.hpp"
#include "record/completion.hpp"
#include "targets/map_copies.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace pyinject::record {

std::optional<int> RecordedOutput::complete(std::optional<RecordSummary>& summary) {
  const auto incomplete = weave_all();
  summary = summarize();
  return incomplete;
}

void RecordedOutput::save_unfinished(std::optional<RecordSummary>& summary) {
  const auto& output = run_.output();
  if (output.pipe || output.several || weave(output.path, true, true) != Processed::kDone) {
    return;
  }
  logger_.warning("perf record died; {} has the samples written until then",
                  base::printable(output.path));
  summary = summarize();
}

std::optional<int> RecordedOutput::weave_all() {
  if (run_.output().pipe) {
    return std::nullopt;
  }
  const auto paths = run_.paths();
  bool lost = false;
  for (const auto& path : paths) {
    const auto processed = weave(path, &path == &paths.back());
    if (processed == Processed::kCancelled) {
      return interruption_.signal() == 0 ? 128 + SIGINT : interruption_.status();
    }
    lost = lost || processed == Processed::kFailed ||
           (processed == Processed::kLeftAlone && !lost_with_completion().empty());
  }
  return lost ? std::optional{kFailure} : std::nullopt;
}

// What is permanently lost if post-processing fails.
std::string RecordedOutput::lost_with_completion() const {
  std::string what = engine_.lost_if_incomplete();
  if (plan_.flags.off_cpu) {
    what += what.empty() ? "times off the processor" : " and times off the processor";
  }
  if (!plan_.flags.timed_calls.empty()) {
    what += what.empty() ? "times of system calls" : " and times of system calls";
  }
  if (!plan_.flags.memory_calls.empty()) {
    what += what.empty() ? "sizes of memory" : " and sizes of memory";
  }
  return what;
}

std::function<bool(std::uint32_t)> RecordedOutput::wanted_samples() const {
  if (!plan_.whole_system()) {
    return {};
  }
  if (!plan_.scope().chosen_from_file()) {
    // perf samples the whole machine; processes invisible from here have pid 0 or -1.
    return procfs::in_first_pid_namespace()
               ? std::function<bool(std::uint32_t)>{}
               : [](std::uint32_t pid) { return pid != 0 && pid != ~0U; };
  }
  return [this](std::uint32_t pid) { return roster_.targets().ever_contained(pid); };
}

weave::RecordingContext RecordedOutput::context() {
  weave::RecordingContext context{
      .scope = plan_.whole_system() ? weave::RecordingContext::Scope::kPythons
                                    : weave::RecordingContext::Scope::kProcesses,
      .wanted = wanted_samples(),
      .open_map = [this](std::uint32_t pid) { return targets::open_map(manager_, pid); }};
  engine_.add_to(context);
  observations_.add_to(context);
  return context;
}

Processed RecordedOutput::weave(const std::string& path, bool last, bool unfinished) {
  WovenFile woven{.path = path, .summary = {}};
  const auto processed = Completion{observations_.files(), logger_, engine_.observer()}.replace(
      path,
      {.recorded = true,
       .unfinished = unfinished,
       .flags = plan_.flags,
       .followed = !last,
       .begun_at = observations_.begun_at(),
       .ended_at = last ? observations_.ended_at() : 0,
       .gaps = observations_.gaps(last),
       .perf = reader_ ? reader_->path : std::string{},
       .names_beside = plan_.names_beside,
       .lost = lost_with_completion(),
       .interrupted = [this] { return interruption_.take(); },
       .context = context()},
      woven.summary);
  if (processed == Processed::kDone) {
    woven_.push_back(std::move(woven));
  } else if (plan_.scope().chosen_from_file()) {
    logger_.warning("{} has the samples of all processes: -u and --comm were not applied", path);
  }
  return processed;
}

RecordSummary RecordedOutput::summarize() {
  run_.repeat_messages(base::LogLevel::kDebug);
  warn_without_off_cpu(woven_, logger_);
  observations_.warn();
  const auto& stats = manager_.stats();
  const auto reasons = python::all_reasons();
  const bool several = stats.activated > 1 || std::ranges::any_of(reasons, [&](auto reason) {
                         return stats.of(reason) != 0;
                       });
  RecordSummary summary{
      .output = run_.output(),
      .woven = std::move(woven_),
      .files = perf::parse_written_files(run_.process().stderr_text(), run_.output()),
      .elapsed = observations_.elapsed(),
      .targets = stats.activated,
      .maps = observations_.maps(),
      .without_perf = !reader_,
      .no_inline = reader_ && perf::lacks_addr2line(*reader_),
      .counters = several ? stats.summary() : std::string{}};
  engine_.summarize(summary);
  engine_.observer().finished(summary);
  return summary;
}

}  // namespace pyinject::record
