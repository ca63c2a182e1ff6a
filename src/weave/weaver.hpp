// The two passes over one recording; weave.hpp says what they do together.
#pragma once

#include "base/budget.hpp"
#include "perfdata/input.hpp"
#include "perfdata/output.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/objects.hpp"
#include "unwind/unwinder.hpp"
#include "weave/merge.hpp"
#include "weave/off_cpu.hpp"
#include "weave/perf_maps.hpp"
#include "weave/sample_work.hpp"
#include "weave/synthetic_names.hpp"
#include "weave/weave.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
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
  [[nodiscard]] WeaveSummary take_summary() { return std::move(summary_); }

 private:
  struct ForkedThread {
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint64_t time = 0;
  };

  void choose_switches();
  void learn_from(const perfdata::Record& record);
  void learn_from_sample(const perfdata::Record& record);
  void learn_loss(const perfdata::Record& record);
  void summarize_losses();
  void learn_switches(const perfdata::Record& record);
  // 0: an idle processor, of which there are several. -1: it has ended and no number any more.
  [[nodiscard]] static bool is_thread(std::uint32_t tid);
  void expect_lines();
  void adopt_orphans();
  void choose_base();
  void name_range(perfdata::Output& output, std::uint32_t pid);
  void write(perfdata::Output& output, const perfdata::Record& record, SampleWork& work);
  void write_renamed(perfdata::Output& output, const perfdata::Record& record,
                     perfdata::Mapping mapping);
  void write_sample(perfdata::Output& output, SampleWork& work);
  [[nodiscard]] bool is_before_waits(const perfdata::Record& record) const;
  void write_waits(perfdata::Output& output, SampleWork& work);
  void write_wait(perfdata::Output& output, SampleWork& work, const perfdata::Event& event,
                  const WaitingThread& thread, std::uint64_t period);
  void unwind_wait(SampleWork& work, const WaitingThread& thread);
  void add_python_of(SampleWork& work, const WaitingThread& thread);
  void unwind_user_part(SampleWork& work);
  void drop_unmapped(SampleWork& work) const;
  void drop(std::uint32_t pid, Limit limit, std::uint64_t count = 1) {
    dropped_[{pid, limit}] += count;
  }
  void summarize_dropped();
  void mark_end(SampleWork& work, const unwind::Unwound& unwound);
  void add_python(SampleWork& work, bool by_frame_pointer);
  void add_around_hole(SampleWork& work, const std::vector<EvaluatorFrame>& evaluators,
                       const PythonStack& stack);
  void count_without_record(const SampleWork& work);
  [[nodiscard]] bool keeps_frame(const SampleWork& work, std::size_t index);
  [[nodiscard]] bool is_of_interpreter(const SampleWork& work, std::uint64_t address) const;
  using PlaceInFile = std::pair<std::string_view, std::uint64_t>;
  [[nodiscard]] PlaceInFile place_in_file(const SampleWork& work, std::uint64_t address) const;
  void learn_callers(const SampleWork& work);
  void learn_root(const SampleWork& work);
  [[nodiscard]] bool begins_thread(const SampleWork& work, std::size_t index) const;
  [[nodiscard]] bool hides_one(const SampleWork& work, std::size_t index);
  [[nodiscard]] std::vector<std::size_t> hiding(const SampleWork& work);
  [[nodiscard]] std::vector<EvaluatorFrame> with_missing(const SampleWork& work,
                                                         std::vector<EvaluatorFrame> evaluators,
                                                         std::size_t count);
  [[nodiscard]] std::vector<EvaluatorFrame> places_of(const SampleWork& work,
                                                      const std::vector<EvaluatorFrame>& evaluators,
                                                      const PythonStack& stack,
                                                      bool by_frame_pointer);
  [[nodiscard]] bool is_cut(const SampleWork& work) const;
  // The callchain ends with a mark that says why it has no outer end.
  [[nodiscard]] bool has_hole(const SampleWork& work) const {
    return work.incomplete_counter != nullptr && spaces_.settled_since(work.sample.pid);
  }
  void add_whole(SampleWork& work, const std::vector<EvaluatorFrame>& evaluators,
                 const PythonStack& stack, bool by_frame_pointer);
  void mark_root(SampleWork& work, const PythonStack& stack);
  void mark(SampleWork& work, const std::string& text);
  [[nodiscard]] std::string trampoline_of(const SampleWork& work,
                                          const EvaluatorFrame& evaluator) const;
  [[nodiscard]] PythonStack python_of(StackQuery query) const;
  [[nodiscard]] AddressKind kind_of(const SampleWork& work, std::uint64_t address) const;
  [[nodiscard]] const Interpreter* interpreter_of(std::uint32_t pid, std::uint64_t time) const;
  [[nodiscard]] const CodeName* name_of(std::uint32_t pid, std::uint64_t code) const;
  [[nodiscard]] std::uint64_t address_of(const PythonFrame& frame, std::uint32_t pid);
  [[nodiscard]] bool lies_in_anonymous_code(std::uint32_t pid, std::uint64_t time,
                                            std::uint64_t address) const;
  [[nodiscard]] SyntheticNames::Place place_of(const PythonFrame& frame, std::uint32_t pid);
  void mark_names(const SampleWork& work, std::size_t from);
  [[nodiscard]] std::vector<perfdata::BuildId> make_images();
  [[nodiscard]] bool go_on(double part);
  [[nodiscard]] bool has_names(std::uint32_t pid, std::uint64_t begin, std::uint64_t end) const;

  const WeaveOptions& options_;
  const RecordingContext& context_;
  perfdata::Input& input_;
  std::shared_ptr<base::RecordingBudget> budget_ = std::make_shared<base::RecordingBudget>();
  unwind::AddressSpaces spaces_{budget_};
  PerfMaps maps_;
  unwind::Objects objects_;
  unwind::Unwinder unwinder_;
  std::optional<SyntheticNames> synthetic_;
  // Of the code of a process, and of a line of it if that is in the name.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, SyntheticNames::Place> places_;
  bool switch_periods_;  // samples of context switches get the time until the thread runs again
  const perfdata::Event* each_switch_ = nullptr;  // that samples them, if there is only one
  OffCpu off_cpu_;
  std::uint64_t first_time_ = 0;  // of a record since the recording began; 0: none has any
  bool waits_written_ = false;
  std::unordered_map<std::uint32_t, ForkedThread> forked_;  // by the child's pid
  std::set<std::uint32_t> processes_;
  std::set<std::uint32_t> introduced_;  // by a COMM or FORK record
  std::set<std::uint32_t> unnamed_;     // that have no mapping for synthetic names yet
  // Of which no record tells where they come from: where they were seen, and later their parents.
  std::map<std::uint32_t, std::vector<std::uint64_t>> orphans_;
  std::map<std::uint32_t, std::uint32_t> adopted_;
  std::set<std::uint64_t> previous_name_ranges_;  // where an earlier weaving has put its names
  std::unordered_map<std::uint32_t, std::vector<AddressRange>> named_;  // by pid
  bool needs_data_ = false;  // a sample has the address of data
  bool all_names_ = false;   // not only those that samples hit
  // Where the evaluator is called, and where threads begin in functions without frames.
  std::set<PlaceInFile> callers_;
  std::set<PlaceInFile> roots_;
  std::uint64_t lost_records_ = 0;  // of any kind, as the kernel told when there was room again
  std::uint64_t lost_samples_ = 0;  // by the counters of the events, which perf read at its end
  WeaveSummary summary_;
  std::map<std::uint32_t, std::string> commands_;  // by pid
  std::map<std::pair<std::uint32_t, Limit>, std::uint64_t> dropped_;
  std::chrono::steady_clock::time_point told_;
};

}  // namespace pyinject::weave
