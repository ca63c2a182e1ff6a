// Turns perf's file into the finished file: complete stacks, lasting names.
#pragma once

#include "perfdata/target_gaps.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/record_observer.hpp"
#include "weave/recorded_files.hpp"
#include "weave/weave.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pyinject::record {

struct CompletionOptions {
  bool recorded = false;    // as WeaveOptions
  bool unfinished = false;  // the same
  weave::WeaveFlags flags = {};
  bool followed = false;           // as WeaveOptions
  std::uint64_t begun_at = 0;      // as WeaveOptions
  std::uint64_t ended_at = 0;      // the same
  perfdata::TargetGaps gaps = {};  // as WeaveOptions
  std::string perf;                // the executable, for its build-id cache; empty: there is none
  bool names_beside = false;       // not in that perf's build-id cache
  std::string lost = {};           // what is lost if the file is left unprocessed
  std::function<bool()> interrupted = {};  // polled a few times a second
  weave::RecordingContext context = {};
};

enum class Processed {
  kDone,
  kLeftAlone,  // the kind of file cannot be post-processed
  kFailed,     // an error was logged, such as no space
  kCancelled,
};

// For record, join and weave. The arguments must outlive it.
class Completion {
 public:
  // FILES: opened during the recording; other files are looked up now.
  Completion(weave::RecordedFiles& files, base::Logger& logger, RecordObserver& observer)
      : files_{files}, logger_{logger}, observer_{observer} {}

  // Weaves INPUT into OUTPUT, which may be the same file, puts the images into perf's build-id
  // cache and logs warnings. Unless it returns kDone, OUTPUT is as it was. SUMMARY: valid after
  // kDone.
  [[nodiscard]] Processed write(const std::string& input, const std::string& output,
                                const CompletionOptions& options, weave::WeaveSummary& summary);
  // The same for PATH itself. With keep_raw, perf's own file is kept as PATH.raw after kDone.
  [[nodiscard]] Processed replace(const std::string& path, const CompletionOptions& options,
                                  weave::WeaveSummary& summary);

 private:
  weave::RecordedFiles& files_;
  base::Logger& logger_;
  RecordObserver& observer_;
};

// Warns if WOVEN, the files of a recording with --off-cpu, do not show how long threads wait.
void warn_without_off_cpu(const std::vector<WovenFile>& woven, base::Logger& logger);

}  // namespace pyinject::record
