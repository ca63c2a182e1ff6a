// The processes of a recording: what the first pass has learned of them, and what was known before.
#pragma once

#include "base/budget.hpp"
#include "perfdata/input.hpp"
#include "unwind/address_spaces.hpp"
#include "weave/perf_maps.hpp"
#include "weave/weave.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace pyinject::weave {

// False for 0, an idle processor, of which there are several, and for -1, a thread that has exited
// and lost its tid.
[[nodiscard]] constexpr bool is_thread(std::uint32_t tid) {
  return tid != 0 && tid != ~std::uint32_t{0};
}

// What MAPPING, whose file name it takes, maps. nullopt: nothing that can be.
[[nodiscard]] std::optional<unwind::MappedFile> mapped_file(perfdata::Mapping& mapping);

struct ForkedThread {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t time = 0;
};

class RecordedProcesses {
 public:
  RecordedProcesses(const RecordingContext& context, const perfdata::Input& input,
                    std::shared_ptr<base::RecordingBudget> budget);

  // Call it for each record in the order of the file, then complete().
  void learn(const perfdata::Record& record);
  void complete();

  [[nodiscard]] const unwind::AddressSpaces& spaces() const { return spaces_; }
  [[nodiscard]] const PerfMaps& maps() const { return maps_; }
  [[nodiscard]] PerfMaps& maps() { return maps_; }
  // Those that have mappings.
  [[nodiscard]] const std::set<std::uint32_t>& all() const { return processes_; }
  // Processes of unknown origin, and what their parents seem to be.
  [[nodiscard]] const std::map<std::uint32_t, std::uint32_t>& adopted() const { return adopted_; }
  // The thread that forked PID; nullptr: unknown, or PID has executed another program.
  [[nodiscard]] const ForkedThread* forked_by(std::uint32_t pid) const;
  [[nodiscard]] std::string command(std::uint32_t pid) const;
  // A sample has a data address.
  [[nodiscard]] bool needs_data() const { return needs_data_; }

  // Of PID at TIME, or of its nearest ancestor by forks.
  [[nodiscard]] const Interpreter* interpreter(std::uint32_t pid, std::uint64_t time) const;
  [[nodiscard]] const MapWriter* map_writer(std::uint32_t pid, std::uint64_t time) const;

  [[nodiscard]] bool lies_in_anonymous_code(std::uint32_t pid, std::uint64_t time,
                                            std::uint64_t address) const;
  // Whether the map of PID has names in [BEGIN, END).
  [[nodiscard]] bool has_names(std::uint32_t pid, std::uint64_t begin, std::uint64_t end) const;
  // Anonymous code with such names, by pid.
  [[nodiscard]] const std::unordered_map<std::uint32_t, std::vector<AddressRange>>& named() const {
    return named_;
  }
  // Whether an earlier weave put a name at ADDRESS.
  [[nodiscard]] bool was_named(std::uint64_t address) const;

 private:
  void learn_sample(const perfdata::Record& record);
  void learn_mapping(const perfdata::Record& record, perfdata::Mapping& mapping);
  void learn_fork(const perfdata::Record& record);
  void learn_command(const perfdata::Record& record);
  void adopt_orphans();

  const RecordingContext& context_;
  const perfdata::Input& input_;
  unwind::AddressSpaces spaces_;
  PerfMaps maps_;
  std::unordered_map<std::uint32_t, ForkedThread> forked_;  // by the child's pid
  std::set<std::uint32_t> processes_;
  std::set<std::uint32_t> introduced_;  // by COMM or FORK records
  // Processes of unknown origin: addresses at which they were seen, and later their parents.
  std::map<std::uint32_t, std::vector<std::uint64_t>> orphans_;
  std::map<std::uint32_t, std::uint32_t> adopted_;
  std::set<std::uint64_t> previous_name_ranges_;  // where an earlier weave put its names
  std::unordered_map<std::uint32_t, std::vector<AddressRange>> named_;
  std::map<std::uint32_t, std::string> commands_;  // by pid
  bool needs_data_ = false;
};

}  // namespace pyinject::weave
