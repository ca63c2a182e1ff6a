// The two passes over one recording; weave.hpp has the contract.
#pragma once

#include "base/budget.hpp"
#include "perfdata/input.hpp"
#include "perfdata/output.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/objects.hpp"
#include "unwind/unwinder.hpp"
#include "weave/call_durations.hpp"
#include "weave/deferred_chains.hpp"
#include "weave/earlier_names.hpp"
#include "weave/greenlet_modules.hpp"
#include "weave/kept_mappings.hpp"
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
  [[nodiscard]] const std::vector<ReplacedFile>& replaced() const { return replaced_; }

 private:
  static constexpr std::string_view kCutCallchain = "[truncated: callchain]";
  static constexpr std::size_t kMayBeCut = 4096;  // entries: more may not fit into a record
  struct ForkedThread {
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint64_t time = 0;
  };

  // An event of a timed system call.
  struct CallEvent {
    std::size_t call = 0;  // its number in the flags
    bool is_end = false;
  };

  // An event of a call that maps memory or gives it back.
  struct MemoryEvent {
    MemoryCall::Kind kind{};
    bool is_end = false;
    [[nodiscard]] bool of_allocator() const {
      return kind == MemoryCall::Kind::kAllocate || kind == MemoryCall::Kind::kFree;
    }
    // Whether its samples may own memory.
    [[nodiscard]] bool owns() const {
      return !is_end && kind != MemoryCall::Kind::kUnmap && kind != MemoryCall::Kind::kFree;
    }
  };

  void choose_switches();
  [[nodiscard]] const perfdata::Event* event_of_each_hit(std::uint64_t tracepoint) const;
  void choose_calls();
  void choose_memory_calls();
  void learn_memory();
  void learn_memory_call(const perfdata::Sample& sample);
  [[nodiscard]] bool keeps_no_memory(const perfdata::Record& record) const;
  void learn_from(const perfdata::Record& record);
  void learn_from_sample(const perfdata::Record& record);
  void learn_loss(const perfdata::Record& record);
  void summarize_losses();
  void learn_switches(const perfdata::Record& record);
  void learn_calls(const perfdata::Record& record);
  // False for 0, an idle processor, of which there are several, and for -1, a thread that has
  // exited and lost its tid.
  [[nodiscard]] static bool is_thread(std::uint32_t tid);
  enum class NameKind : std::uint8_t { kOther, kPython, kMark };
  [[nodiscard]] NameKind name_kind(const SampleWork& work, std::uint64_t address);
  void keep_python(SampleWork& work, std::size_t from);
  [[nodiscard]] bool takes_period(const perfdata::Event& event) const;
  [[nodiscard]] std::optional<std::uint64_t> period_of(SampleWork& work);
  [[nodiscard]] bool is_end_of_call(const perfdata::Record& record) const;
  void expect_lines();
  void adopt_orphans();
  void choose_base();
  void name_range(perfdata::Output& output, const perfdata::Record& record, std::uint32_t pid);
  void write(perfdata::Output& output, const perfdata::Record& record, SampleWork& work);
  void write_renamed(perfdata::Output& output, const perfdata::Record& record,
                     perfdata::Mapping mapping);
  [[nodiscard]] bool write_synthesized_comm(perfdata::Output& output,
                                            const perfdata::Record& record);
  void name_started(perfdata::Output& output, const perfdata::Record& record) const;
  void name_sampled(perfdata::Output& output, const perfdata::Sample& sample);
  void write_sample(perfdata::Output& output, SampleWork& work);
  [[nodiscard]] bool is_before_waits(const perfdata::Record& record) const;
  void write_waits(perfdata::Output& output, SampleWork& work);
  void write_wait(perfdata::Output& output, SampleWork& work, const perfdata::Event& event,
                  const WaitingThread& thread, std::uint64_t period);
  void unwind_wait(SampleWork& work, const WaitingThread& thread);
  void add_python_of(SampleWork& work, const WaitingThread& thread);
  void insert_deferred(SampleWork& work);
  void unwind_user_part(SampleWork& work);
  [[nodiscard]] bool take_native(SampleWork& work);
  void drop_unmapped(SampleWork& work) const;
  [[nodiscard]] bool writes_map(const SampleWork& work);
  [[nodiscard]] const MapWriter* map_writer_of(std::uint32_t pid, std::uint64_t time) const;
  void drop(std::uint32_t pid, Limit limit, std::uint64_t count = 1) {
    dropped_[{pid, limit}] += count;
  }
  void summarize_dropped();
  void mark_end(SampleWork& work, const unwind::Unwound& unwound);
  void mark_incomplete(SampleWork& work, std::uint64_t& counter, const std::string& name);
  void add_python(SampleWork& work, bool by_frame_pointer);
  [[nodiscard]] bool may_have_greenlets(std::uint32_t pid) const;
  [[nodiscard]] std::vector<GreenletModules::Part> greenlet_parts(const SampleWork& work);
  [[nodiscard]] static std::optional<std::size_t> root_of_greenlet(
      const SampleWork& work, const std::vector<GreenletModules::Part>& parts, bool names);
  [[nodiscard]] static bool may_switch(const SampleWork& work,
                                       const std::vector<GreenletModules::Part>& parts,
                                       std::optional<std::size_t> root, bool by_frame_pointer);
  void end_at_greenlet(SampleWork& work, bool by_frame_pointer);
  void add_copied(SampleWork& work);
  void add_around_hole(SampleWork& work, const std::vector<EvaluatorFrame>& evaluators,
                       const sample::Stack& stack);
  void count_without_record(SampleWork& work);
  using StackKind = perfdata::StackKind;
  [[nodiscard]] std::optional<StackKind> kind_without_python(const SampleWork& work,
                                                             bool by_frame_pointer) const;
  [[nodiscard]] static StackKind kind_of_whole(const SampleWork& work, const sample::Stack& stack);
  void judge_trampolines(SampleWork& work, bool unnamed, bool by_frame_pointer);
  [[nodiscard]] std::uint64_t address_of_mark(const std::string& text);
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
                                                      const sample::Stack& stack,
                                                      bool by_frame_pointer);
  [[nodiscard]] bool is_cut(const SampleWork& work) const;
  // The callchain ends with a mark for the reason why it lacks its outer end.
  [[nodiscard]] bool has_hole(const SampleWork& work) const {
    return work.incomplete_counter != nullptr && spaces_.settled_since(work.sample.pid);
  }
  void add_whole(SampleWork& work, const std::vector<EvaluatorFrame>& evaluators,
                 const sample::Stack& stack, bool by_frame_pointer);
  void mark_greenlet(SampleWork& work);
  void add_parents(SampleWork& work, const sample::Stack& stack);
  void mark_root(SampleWork& work, const sample::Stack& stack);
  void mark(SampleWork& work, const std::string& text);
  [[nodiscard]] std::string trampoline_of(const SampleWork& work,
                                          const EvaluatorFrame& evaluator) const;
  [[nodiscard]] StackQuery query_of(const SampleWork& work) const;
  [[nodiscard]] sample::Stack python_of(StackQuery query) const;
  [[nodiscard]] AddressKind kind_of(const SampleWork& work, std::uint64_t address) const;
  [[nodiscard]] const Interpreter* interpreter_of(std::uint32_t pid, std::uint64_t time) const;
  [[nodiscard]] const sample::Code* name_of(std::uint32_t pid, std::uint64_t code) const;
  [[nodiscard]] std::uint64_t address_of(const sample::Frame& frame, std::uint32_t pid,
                                         std::uint64_t time);
  [[nodiscard]] bool lies_in_anonymous_code(std::uint32_t pid, std::uint64_t time,
                                            std::uint64_t address) const;
  [[nodiscard]] SyntheticNames::Place place_of(const sample::Frame& frame, std::uint32_t pid);
  void mark_names(const SampleWork& work, std::size_t from);
  [[nodiscard]] std::vector<perfdata::BuildId> make_images();
  void learn_deleted();
  void mark_deleted(const SampleWork& work, std::size_t from);
  void add_replaced(std::vector<perfdata::BuildId>& ids);
  [[nodiscard]] bool go_on(double part);
  [[nodiscard]] bool has_names(std::uint32_t pid, std::uint64_t begin, std::uint64_t end) const;

  const WeaveOptions& options_;
  const RecordingContext& context_;
  perfdata::Input& input_;
  unwind::FileFinder& files_;
  std::shared_ptr<base::RecordingBudget> budget_ = std::make_shared<base::RecordingBudget>();
  unwind::AddressSpaces spaces_{budget_};
  PerfMaps maps_;
  unwind::Objects objects_;
  unwind::Unwinder unwinder_;
  GreenletModules greenlets_;
  std::set<std::uint32_t> greenlet_families_;  // some of whose processes have mapped the module
  std::optional<SyntheticNames> synthetic_;
  std::set<std::uint64_t> marks_;        // addresses of SYNTHETIC that are no functions
  std::optional<EarlierNames> earlier_;  // with PYTHON_ONLY
  // For the code of a process, and for a line of it if names include lines.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, SyntheticNames::Place> places_;
  bool switch_periods_;  // each context switch sample gets its off-CPU time as period
  const perfdata::Event* each_switch_ = nullptr;  // samples the switches, if it is the only one
  OffCpu off_cpu_;
  std::optional<DeferredChains> deferred_;  // if an event has any
  std::unordered_map<const perfdata::Event*, CallEvent> call_events_;
  CallDurations calls_;
  std::unordered_map<const perfdata::Event*, MemoryEvent> memory_events_;
  KeptMappings kept_;
  KeptMappings blocks_;           // of allocators that tell them
  std::uint64_t first_time_ = 0;  // first record time of the recording; 0: records have no time
  bool waits_written_ = false;
  std::unordered_map<std::uint32_t, ForkedThread> forked_;  // by the child's pid
  std::set<std::uint32_t> processes_;
  std::set<std::uint32_t> introduced_;  // by COMM or FORK records
  std::set<std::uint32_t> unnamed_;     // their program has no mapping for synthetic names yet
  // Processes of unknown origin: addresses at which they were seen, and later their parents.
  std::map<std::uint32_t, std::vector<std::uint64_t>> orphans_;
  std::map<std::uint32_t, std::uint32_t> adopted_;
  std::set<std::uint32_t> comms_written_;  // by tid: of threads that existed before the recording
  std::set<std::uint64_t> previous_name_ranges_;  // where an earlier weave put its names
  std::unordered_map<std::uint32_t, std::vector<AddressRange>> named_;  // by pid
  bool needs_data_ = false;  // a sample has a data address
  bool all_names_ = false;   // not only those hit by samples
  // Call sites of the evaluator, and functions without frames in which threads start.
  std::set<PlaceInFile> callers_;
  std::set<PlaceInFile> roots_;
  std::uint64_t lost_records_ = 0;  // of any kind, reported when there was room again
  std::uint64_t lost_samples_ = 0;  // by the events' counters, which perf reads when it exits
  WeaveSummary summary_;
  std::vector<const unwind::MappedFile*> deleted_;  // executables, by the begin of their mappings
  std::map<std::string_view, const unwind::MappedFile*> deleted_hit_;  // by path
  std::vector<ReplacedFile> replaced_;
  std::map<std::uint32_t, std::string> commands_;  // by pid
  std::map<std::pair<std::uint32_t, Limit>, std::uint64_t> dropped_;
  std::chrono::steady_clock::time_point told_;
};

}  // namespace pyinject::weave
