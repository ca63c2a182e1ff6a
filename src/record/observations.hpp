// What this tool learns about a recording while perf samples: its times, its gaps, the names and
// waits of threads, the perf maps and files of processes that exit.
#pragma once

#include "perfdata/target_gaps.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/record/plan.hpp"
#include "pyinject/targets/manager.hpp"
#include "record/roster.hpp"
#include "record/thread_name_watch.hpp"
#include "record/waiting_threads.hpp"
#include "targets/container_maps.hpp"
#include "targets/map_copies.hpp"
#include "weave/recorded_files.hpp"
#include "weave/weave.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pyinject::record {

class Observations {
 public:
  // PLAN must outlive this object.
  Observations(const RecordPlan& plan, base::Logger& logger);

  // Opens the files that PID has mapped.
  void activated(base::Pid pid) { files_.keep(pid); }
  void switched_off_by_program(base::Pid pid);
  // Call it immediately: CHILD may exit at any time.
  void forked(base::Pid child) { maps_of_children_.keep(child); }
  // PID has exited or exec'ed. ACTIVE: null if it was no target.
  void ended(base::Pid pid, const targets::ActiveTarget* active);

  // The events are about to be enabled.
  void begins();
  // They are enabled, or perf has ended.
  void enabled() { enabled_at_ = Clock::now(); }
  // Looks at the threads that wait already (--off-cpu), and at the names of threads.
  void look(const targets::ActiveTargets& active, const Roster& roster);
  void look_again(const targets::ActiveTargets& active) { thread_names_.look_again(active); }
  // The events are about to be disabled.
  void ends(const targets::ActiveTargets& active);
  // ACKNOWLEDGED: perf has disabled its events.
  void disabled(bool acknowledged);
  // A last look at the names of threads.
  void look_at_names(const targets::ActiveTargets& active) { thread_names_.look(active); }
  // Copies the maps of all that still run.
  void collect_maps(const targets::ActiveTargets& active);

  // Since the events were enabled; after disabled(), until then.
  [[nodiscard]] std::chrono::nanoseconds elapsed() const;
  // By the recording's clock; 0: unknown.
  [[nodiscard]] std::uint64_t begun_at() const { return begun_at_; }
  [[nodiscard]] std::uint64_t ended_at() const { return ended_at_; }
  // LAST: those of the last of several files.
  [[nodiscard]] perfdata::TargetGaps gaps(bool last) const;
  [[nodiscard]] const std::vector<perf::CollectedMap>& maps() const { return maps_.collected(); }
  [[nodiscard]] weave::RecordedFiles& files() { return files_; }
  void add_to(weave::RecordingContext& context);
  // Warns about gaps, and about waits that could not be read.
  void warn() const;

 private:
  using Clock = std::chrono::steady_clock;

  const RecordPlan& plan_;
  base::Logger& logger_;
  Clock::time_point enabled_at_;
  std::optional<std::chrono::nanoseconds> elapsed_;
  std::uint64_t begun_at_ = 0;
  std::uint64_t ended_at_ = 0;
  perfdata::TargetGaps gaps_;
  targets::ContainerMaps maps_of_children_;
  targets::MapCopies maps_;
  weave::RecordedFiles files_;
  std::optional<WaitingThreads> waits_;
  ThreadNameWatch thread_names_;
};

}  // namespace pyinject::record
