// The addresses that stand for functions and marks in callchains, and the images with their names.
#pragma once

#include "base/budget.hpp"
#include "perfdata/output.hpp"
#include "weave/recorded_processes.hpp"
#include "weave/sample_work.hpp"
#include "weave/synthetic_names.hpp"
#include "weave/tally.hpp"
#include "weave/weave.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace pyinject::weave {

class FunctionNames {
 public:
  // PROCESSES is complete.
  FunctionNames(const WeaveOptions& options, const RecordingContext& context,
                RecordedProcesses& processes, std::shared_ptr<base::RecordingBudget> budget,
                Tally& tally);

  // Of FRAME, which thread of PID ran at TIME.
  [[nodiscard]] std::uint64_t address_of(const sample::Frame& frame, std::uint32_t pid,
                                         std::uint64_t time);
  // Of a mark, such as "[truncated: callchain]".
  [[nodiscard]] std::uint64_t address_of_mark(const std::string& text);
  [[nodiscard]] bool is_mark(std::uint64_t address) const { return marks_.contains(address); }
  // Of the names that have no address of their own.
  [[nodiscard]] AddressRange range() const { return synthetic_.range(); }
  [[nodiscard]] bool is_own(std::uint64_t address) const {
    return range().begin <= address && address < range().end;
  }

  // A target's map can have any number of names: only those that samples hit are kept. The user
  // part of WORK's result starts at FROM.
  void note_hit(const SampleWork& work, std::size_t from);
  // Addresses that are not known are in the file: keeps all names.
  void keep_all() { all_ = true; }
  // Makes the images, and counts what was dropped.
  [[nodiscard]] std::vector<perfdata::BuildId> finish();

 private:
  void expect_lines();
  [[nodiscard]] const sample::Code* name_of(std::uint32_t pid, std::uint64_t code) const;
  [[nodiscard]] SyntheticNames::Place place_of(const sample::Frame& frame, std::uint32_t pid);

  const WeaveOptions& options_;
  const RecordingContext& context_;
  RecordedProcesses& processes_;
  std::shared_ptr<base::RecordingBudget> budget_;
  Tally& tally_;
  SyntheticNames synthetic_;
  std::set<std::uint64_t> marks_;  // addresses of SYNTHETIC that are no functions
  // For the code of a process, and for a line of it if names include lines.
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, SyntheticNames::Place> places_;
  bool all_ = false;
};

}  // namespace pyinject::weave
