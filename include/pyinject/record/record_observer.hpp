// What a recording has to tell people while it goes on; how, is the command line's business.
#pragma once

#include "pyinject/perf/map_collector.hpp"
#include "pyinject/perf/output_file.hpp"
#include "pyinject/record/sampler_stats.hpp"
#include "pyinject/targets/manager.hpp"
#include "pyinject/targets/stats.hpp"
#include "pyinject/weave/weave_summary.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::session {

// A file of perf's with whole stacks.
struct WovenFile {
  std::string path;
  weave::WeaveSummary summary;
};

struct RecordSummary {
  perf::Output output;
  std::vector<WovenFile> woven;  // FILES have been replaced by these
  std::vector<perf::WrittenFile> files;
  std::chrono::nanoseconds elapsed{};  // events enabled to disabled
  std::size_t targets = 0;
  std::vector<perf::CollectedMap> maps;
  // Threads whose functions from before the attach could not be read (record/frame_watch.hpp).
  std::size_t unknown_threads = 0;
  std::optional<SamplerStats> sampler = {};  // with --engine bpf
  std::string counters = {};  // Stats::summary(); empty: one was switched on and off, no more
};

class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  RecordObserver() = default;
  RecordObserver(const RecordObserver&) = delete;
  RecordObserver& operator=(const RecordObserver&) = delete;

  virtual void activated(const ActiveTarget& target) = 0;
  // About twice a second while events are enabled. BYTES: of the file, when it is a single one.
  virtual void progress(std::chrono::nanoseconds elapsed, std::optional<std::uint64_t> bytes) = 0;
  // Some times a second while the file gets its stacks. DONE: 0 to 1.
  virtual void post_processing(double done, std::uint64_t samples) = 0;
  // Whatever progress() or post_processing() has drawn is out of date.
  virtual void stopped() = 0;
  virtual void finished(const RecordSummary& summary) = 0;
  // What was done to one process. As ManagerOptions::on_event.
  virtual void on_event(const Event& /*event*/) {}
  // The last call, however it ends.
  virtual void counted(const Stats& /*stats*/) {}
};

}  // namespace pyinject::session
