// The mappings of each process at each time, built from the records of a file, which are not in
// order of time.
#pragma once

#include "base/budget.hpp"
#include "unwind/pieces.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace pyinject::unwind {

using Time = std::uint64_t;  // by the recording's clock, nanoseconds
using ProcessNumber = std::uint32_t;

struct MappedFile {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the file
  bool executable = false;
  std::string path;  // "//anon", "[vdso]" and the like are not files
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;      // 0: unknown
  std::string build_id{};       // lower-case hexadecimal; empty: unknown
  ProcessNumber mapped_by = 0;  // a forked process keeps its parent's value
};

class AddressSpaces {
 public:
  // Copies of the mappings of forked processes are charged to BUDGET's bytes and to the first
  // process of the family, which consists of the processes related by forks alone.
  explicit AddressSpaces(
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>())
      : budget_{std::move(budget)} {}

  // Call these in any order, except that changes with the same time keep their order; then call
  // complete(). May be repeated.
  void map(Time time, ProcessNumber pid, MappedFile file);
  void fork(Time time, ProcessNumber parent, ProcessNumber child);
  void exec(Time time, ProcessNumber pid);
  void complete();

  // The mapping of PID at ADDRESS at TIME; valid as long as this object. nullptr: unknown.
  [[nodiscard]] const MappedFile* find(ProcessNumber pid, Time time, std::uint64_t address) const {
    return look_up(pid, time, address).file;
  }
  // The result is the same for any time in [FROM, UNTIL), which may be empty.
  struct Found {
    const MappedFile* file = nullptr;
    Time from = 0;
    Time until = 0;
    std::size_t steps = 0;  // old mappings that were examined
  };
  [[nodiscard]] Found look_up(ProcessNumber pid, Time time, std::uint64_t address) const;
  // From this time on, find() gives the same result at any time; nullopt: nothing is known about
  // PID.
  [[nodiscard]] std::optional<Time> settled_since(ProcessNumber pid) const;
  // The first process of PID's family.
  [[nodiscard]] ProcessNumber family(ProcessNumber pid) const;
  // Families that exceeded their limit, and how many of their processes start without mappings.
  [[nodiscard]] const std::map<ProcessNumber, std::uint64_t>& emptied() const { return emptied_; }
  // All files ever mapped, by time at complete().
  [[nodiscard]] const std::deque<MappedFile>& files() const { return files_; }
  // The process that PID was forked from, and when; nullopt: it existed before, or its origin is
  // unknown. Refers to the program that ran at TIME: a program that was exec'ed has no origin.
  struct Origin {
    ProcessNumber parent = 0;
    Time time = 0;
  };
  [[nodiscard]] std::optional<Origin> origin(ProcessNumber pid, Time time = ~Time{0}) const;
  // When that program started, by a fork or an exec; 0: no record tells.
  [[nodiscard]] Time began(ProcessNumber pid, Time time) const;

 private:
  struct Fork {
    ProcessNumber parent = 0;
  };
  struct Exec {};
  struct Change {
    Time time = 0;
    ProcessNumber pid = 0;
    std::variant<const MappedFile*, Fork, Exec> what;
  };
  struct Image {
    std::shared_ptr<const Pieces> pieces;
    Time until = 0;
  };
  struct Process {
    std::shared_ptr<Pieces> live;  // shared with a forked process until either changes
    std::vector<Piece> gone;
    std::vector<Image> left;  // replaced by exec
    Time changed = 0;
    ProcessNumber family = 0;
  };
  struct Beginning {
    Time time = 0;
    std::optional<ProcessNumber> parent;  // nullopt: an exec
  };

  void apply(const Change& change);
  static void retire(Process& process, Piece piece, Time time);
  // Returns the mappings of PROCESS, no longer shared, so that PIECE can be put in. Drops all
  // mappings of PROCESS if the copy exceeds the share of its family.
  [[nodiscard]] Pieces& to_change(Process& process, const Piece& piece);
  [[nodiscard]] bool may_copy(const Process& process, std::uint64_t bytes);
  void insert(Process& process, const Piece& piece);
  [[nodiscard]] const Beginning* beginning(ProcessNumber pid, Time time) const;

  std::deque<MappedFile> files_;
  std::vector<Change> changes_;
  std::unordered_map<ProcessNumber, Process> processes_;
  // Of all processes with that pid, in order of time.
  std::unordered_map<ProcessNumber, std::vector<Beginning>> beginnings_;
  std::shared_ptr<base::RecordingBudget> budget_;
  std::map<ProcessNumber, std::uint64_t> copied_;  // bytes, by family
  std::map<ProcessNumber, std::uint64_t> emptied_;
};

}  // namespace pyinject::unwind
