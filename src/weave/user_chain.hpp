// The user part of a sample's callchain, before Python functions are added: as recorded, unwound
// from the copied stack, or as a BPF program has unwound it at the sample.
#pragma once

#include "perfdata/input.hpp"
#include "unwind/unwinder.hpp"
#include "weave/deferred_chains.hpp"
#include "weave/function_names.hpp"
#include "weave/recorded_processes.hpp"
#include "weave/sample_work.hpp"
#include "weave/tally.hpp"
#include "weave/waits.hpp"
#include "weave/weave.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace pyinject::weave {

class UserChain {
 public:
  UserChain(const RecordingContext& context, const RecordedProcesses& processes,
            FunctionNames& names, unwind::Unwinder& unwinder, const perfdata::Input& input,
            Tally& tally);

  // Call it for each record in the order of the file, before its sample is read.
  void pass(const perfdata::Record& record);
  struct Read {
    std::size_t begin = 0;          // of the user part in WORK's result
    bool by_frame_pointer = false;  // the kernel's frame pointers have led through it
  };
  // Reads the callchain of WORK's sample: the kernel's part becomes the result, the user's the
  // chain.
  Read read(SampleWork& work);
  // The same for a thread that is no sample, from a few registers and its stack.
  void unwind_wait(SampleWork& work, const WaitingThread& thread);
  // Whether the sample is of a write to the perf map, which the process does not write without this
  // tool. Then it does not count.
  [[nodiscard]] bool writes_map(const SampleWork& work);

 private:
  void insert_deferred(SampleWork& work);
  void unwind_copied(SampleWork& work);
  [[nodiscard]] bool take_native(SampleWork& work);
  void drop_unmapped(SampleWork& work) const;
  void mark_end(SampleWork& work, const unwind::Unwound& unwound);
  void mark_incomplete(SampleWork& work, std::uint64_t& counter, const std::string& name);
  [[nodiscard]] bool is_map_write(const SampleWork& work);

  const RecordingContext& context_;
  const RecordedProcesses& processes_;
  FunctionNames& names_;
  unwind::Unwinder& unwinder_;
  Tally& tally_;
  WeaveSummary& summary_;
  std::optional<DeferredChains> deferred_;  // if an event has any
};

}  // namespace pyinject::weave
