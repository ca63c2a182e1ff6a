// Greenlets: their callchains end where their C stack does.
#pragma once

#include "weave/greenlet_modules.hpp"
#include "weave/recorded_processes.hpp"
#include "weave/sample_work.hpp"

#include <cstdint>
#include <set>
#include <vector>

namespace pyinject::weave {

class GreenletStacks {
 public:
  // PROCESSES is complete.
  GreenletStacks(const RecordedProcesses& processes, unwind::FileFinder& files);

  [[nodiscard]] bool may_be_in(std::uint32_t pid) const;
  // Call it when the kinds of WORK's chain are known. Ends the chain with the outermost function of
  // the greenlet that runs: what is in memory below it belongs to other greenlets, and may have
  // changed since.
  void end_chain(SampleWork& work, bool by_frame_pointer);

 private:
  using Part = GreenletModules::Part;
  // Which parts of WORK's chain are in greenlet's module; empty: none.
  [[nodiscard]] std::vector<Part> parts_of(const SampleWork& work);

  const RecordedProcesses& processes_;
  GreenletModules modules_;
  std::set<std::uint32_t> families_;  // some of whose processes have mapped the module
};

}  // namespace pyinject::weave
