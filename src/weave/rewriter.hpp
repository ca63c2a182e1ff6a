// The second pass: copies records, adds stacks to samples, and makes the images with the names.
#pragma once

#include "perfdata/input.hpp"
#include "perfdata/output.hpp"
#include "weave/deleted_files.hpp"
#include "weave/function_names.hpp"
#include "weave/python_only.hpp"
#include "weave/recorded_processes.hpp"
#include "weave/sample_periods.hpp"
#include "weave/sample_work.hpp"
#include "weave/stack_builder.hpp"
#include "weave/tally.hpp"
#include "weave/user_chain.hpp"
#include "weave/waits.hpp"
#include "weave/weave.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace pyinject::weave {

// What the second pass needs of the first.
struct Learned {
  const WeaveOptions& options;
  const RecordingContext& context;
  perfdata::Input& input;
  unwind::FileFinder& files;
  std::shared_ptr<base::RecordingBudget> budget;
  RecordedProcesses& processes;
  SamplePeriods& periods;
  unwind::Unwinder& unwinder;
  Tally& tally;
};

class Rewriter {
 public:
  Rewriter(const Learned& learned, int fd);

  // GO_ON(part done): false cancels, and so this returns false.
  [[nodiscard]] bool rewrite(const std::function<bool(double)>& go_on);
  // Files that must be in perf's cache.
  [[nodiscard]] std::vector<ReplacedFile> take_replaced() { return std::move(replaced_); }

 private:
  void finish();
  void name_range(const perfdata::Record& record, std::uint32_t pid);
  void write(const perfdata::Record& record);
  void write_renamed(const perfdata::Record& record, perfdata::Mapping mapping);
  void write_wanted(const perfdata::Record& record);
  void write_sample();
  [[nodiscard]] bool write_result(std::size_t begin, std::optional<std::uint64_t> period);
  // Names of threads that only their program knows (rewriter_comms.cpp).
  [[nodiscard]] bool write_synthesized_comm(const perfdata::Record& record);
  void name_started(const perfdata::Record& record);
  void name_sampled();
  // Threads that waited when the recording began (rewriter_waits.cpp).
  [[nodiscard]] bool is_before_waits(const perfdata::Record& record) const;
  void write_waits();
  void write_wait(const perfdata::Event& event, const WaitingThread& thread, std::uint64_t period);

  const Learned learned_;
  WeaveSummary& summary_;
  FunctionNames names_;
  UserChain user_;
  StackBuilder builder_;
  DeletedFiles deleted_;
  std::optional<PythonOnly> python_only_;
  perfdata::Output output_;
  SampleWork work_;
  std::set<std::uint32_t> unnamed_;  // their program has no mapping for synthetic names yet
  std::map<std::uint32_t, std::uint32_t> adopted_;  // that have no FORK record yet
  std::set<std::uint32_t> comms_written_;  // by tid: of threads that existed before the recording
  bool waits_written_ = false;
  std::vector<ReplacedFile> replaced_;
};

}  // namespace pyinject::weave
