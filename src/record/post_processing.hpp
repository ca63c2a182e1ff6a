// What becomes of perf's file after the recording: whole stacks, lasting names.
#pragma once

#include "pyinject/base/log.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "pyinject/perf/perf_locator.hpp"
#include "pyinject/record/record_observer.hpp"
#include "weave/recorded_files.hpp"
#include "weave/weave.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace pyinject::session {

struct PostProcessing {
  std::string input;
  std::string output;
  bool recorded = false;    // as WeaveOptions
  bool unfinished = false;  // the same
  weave::WeaveFlags flags = {};
  bool followed = false;                   // as WeaveOptions
  std::uint64_t begun_at = 0;              // as WeaveOptions
  std::uint64_t ended_at = 0;              // the same
  std::string perf;                        // the executable, for its build-id cache
  bool names_beside = false;               // not in that perf's build-id cache
  std::string lost = {};                   // what is, when the file is left as perf wrote it
  std::function<bool()> interrupted = {};  // asked some times a second
  weave::RecordingContext context = {};
};

enum class Processed {
  kDone,
  kLeftAlone,  // it is of no kind that can be completed
  kFailed,     // an error was said: no space, say
  kCancelled,
};

// Weaves, puts the images into perf's build-id cache, and says what is to be said. Unless it is
// done the file is as perf wrote it. SUMMARY: valid when it is done.
[[nodiscard]] Processed post_process(const PostProcessing& work, weave::RecordedFiles& files,
                                     base::Logger& logger, RecordObserver* observer,
                                     weave::WeaveSummary& summary);

// The same of PATH itself, which is WORK's input and output. With KEEP_RAW what perf wrote stays,
// as PATH.raw, when it is done.
[[nodiscard]] Processed post_process_in_place(const std::string& path, PostProcessing work,
                                              weave::RecordedFiles& files, base::Logger& logger,
                                              RecordObserver* observer,
                                              weave::WeaveSummary& summary);

// If a recording with --off-cpu, of which WOVEN are the files, does not tell how long threads wait.
void warn_without_off_cpu(const std::vector<WovenFile>& woven, base::Logger& logger);

}  // namespace pyinject::session
