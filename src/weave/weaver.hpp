// The two passes over one recording; weave.hpp has the contract.
#pragma once

#include "base/budget.hpp"
#include "perfdata/input.hpp"
#include "unwind/objects.hpp"
#include "unwind/unwinder.hpp"
#include "weave/losses.hpp"
#include "weave/recorded_processes.hpp"
#include "weave/sample_periods.hpp"
#include "weave/tally.hpp"
#include "weave/weave.hpp"

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace pyinject::weave {

class Weaver {
 public:
  Weaver(const WeaveOptions& options, const RecordingContext& context, unwind::FileFinder& files,
         perfdata::Input& input);

  // False: cancelled.
  [[nodiscard]] bool learn();
  [[nodiscard]] bool rewrite(int fd);
  [[nodiscard]] WeaveSummary take_summary() { return std::move(tally_.summary); }
  [[nodiscard]] const std::vector<ReplacedFile>& replaced() const { return replaced_; }

 private:
  void summarize_dropped();
  [[nodiscard]] bool go_on(double part);

  const WeaveOptions& options_;
  const RecordingContext& context_;
  perfdata::Input& input_;
  unwind::FileFinder& files_;
  std::shared_ptr<base::RecordingBudget> budget_ = std::make_shared<base::RecordingBudget>();
  Tally tally_;
  RecordedProcesses processes_;
  SamplePeriods periods_;
  Losses losses_;
  std::vector<ReplacedFile> replaced_;
  std::chrono::steady_clock::time_point last_progress_;
};

}  // namespace pyinject::weave
