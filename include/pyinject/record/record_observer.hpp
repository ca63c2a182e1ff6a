// Progress and results of a recording; the command line decides how to show them.
//
// For example:
//   struct Files : record::RecordObserver {
//     void finished(const record::RecordSummary& summary) override {
//       std::cout << summary.output.path << '\n';
//     }
//   };
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

namespace pyinject::record {

// A file written by perf, with complete stacks.
struct WovenFile {
  std::string path;
  weave::WeaveSummary summary;
};

struct RecordSummary {
  perf::Output output;
  std::vector<WovenFile> woven;  // these replaced the files of the same names
  std::vector<perf::WrittenFile> files;
  std::chrono::nanoseconds elapsed{};  // from events enabled to events disabled
  std::size_t targets = 0;
  std::vector<perf::CollectedMap> maps;
  // Threads whose functions entered before the attach could not be read (record/frame_watch.hpp).
  std::size_t unknown_threads = 0;
  std::optional<SamplerStats> sampler = {};  // with --engine bpf
  bool without_perf = false;                 // none is installed
  bool no_inline = false;     // perf can read the file only with --no-inline (perf_locator.hpp)
  std::string counters = {};  // Stats::summary(); empty: a single target was on, then off
};

// Does nothing: override what is to be shown.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  RecordObserver() = default;
  RecordObserver(const RecordObserver&) = delete;
  RecordObserver& operator=(const RecordObserver&) = delete;

  virtual void activated(const targets::ActiveTarget& /*target*/) {}
  // Instead of activated(), if TARGET is only read: its trampoline stays as it is.
  virtual void observed(const targets::ActiveTarget& target) { activated(target); }
  // About twice a second while events are enabled. BYTES: size of the output if it is a single
  // file.
  virtual void progress(std::chrono::nanoseconds /*elapsed*/,
                        std::optional<std::uint64_t> /*bytes*/) {}
  // A few times a second during post-processing. DONE: 0 to 1.
  virtual void post_processing(double /*done*/, std::uint64_t /*samples*/) {}
  // Anything that progress() or post_processing() has drawn is outdated.
  virtual void stopped() {}
  virtual void finished(const RecordSummary& /*summary*/) {}
  // As ManagerOptions::on_event.
  virtual void on_event(const targets::Event& /*event*/) {}
  // The last call, however the recording ends.
  virtual void counted(const targets::Stats& /*stats*/) {}
};

}  // namespace pyinject::record
