// What was mapped where, in which process, at which time: built from the records of a file, which
// are not in the order of time.
#pragma once

#include "base/budget.hpp"

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

using Time = std::uint64_t;  // of the recording's clock, nanoseconds
using ProcessNumber = std::uint32_t;

struct MappedFile {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;  // in the file
  bool executable = false;
  std::string path;  // "//anon", "[vdso]" and the like are no files
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;      // 0: not known
  std::string build_id{};       // lower-case hexadecimal; empty: not known
  ProcessNumber mapped_by = 0;  // a forked process has its parent's
};

class AddressSpaces {
 public:
  // Copies of the mappings of forked processes are charged to BUDGET's bytes, and to the first
  // process of the family: those that came from it by forks alone.
  explicit AddressSpaces(
      std::shared_ptr<base::RecordingBudget> budget = std::make_shared<base::RecordingBudget>())
      : budget_{std::move(budget)} {}

  // In any order; of what happened at one time the order counts. To be followed by complete(), as
  // often as one likes.
  void map(Time time, ProcessNumber pid, MappedFile file);
  void fork(Time time, ProcessNumber parent, ProcessNumber child);
  void exec(Time time, ProcessNumber pid);
  void complete();

  // What PID had at ADDRESS at TIME; valid as long as this object. nullptr: nothing is known.
  [[nodiscard]] const MappedFile* find(ProcessNumber pid, Time time, std::uint64_t address) const {
    return look_up(pid, time, address).file;
  }
  // The same is found for any time of [FROM, UNTIL), which may be empty.
  struct Found {
    const MappedFile* file = nullptr;
    Time from = 0;
    Time until = 0;
    std::size_t steps = 0;  // mappings of the past that were looked at
  };
  [[nodiscard]] Found look_up(ProcessNumber pid, Time time, std::uint64_t address) const;
  // From then on find() gives the same at any time; nullopt: nothing is known of PID.
  [[nodiscard]] std::optional<Time> settled_since(ProcessNumber pid) const;
  // The first process of PID's family.
  [[nodiscard]] ProcessNumber family(ProcessNumber pid) const;
  // Families whose copies were too much: so many of their processes begin without mappings.
  [[nodiscard]] const std::map<ProcessNumber, std::uint64_t>& emptied() const { return emptied_; }
  // All that were ever mapped, in the order of complete()'s time.
  [[nodiscard]] const std::deque<MappedFile>& files() const { return files_; }
  // The process that PID was forked from, and when; nullopt: it was there before, or is unknown.
  // What ran in it at TIME: a program of its own comes from nobody.
  struct Origin {
    ProcessNumber parent = 0;
    Time time = 0;
  };
  [[nodiscard]] std::optional<Origin> origin(ProcessNumber pid, Time time = ~Time{0}) const;
  // When that began, by a fork or an exec; 0: no record tells.
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
  // [begin, end) of a file's mapping; a later one may have taken a part of it away.
  struct Piece {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Time from = 0;
    Time until = ~Time{0};
    const MappedFile* file = nullptr;
  };
  using Pieces = std::map<std::uint64_t, Piece>;  // by begin
  struct Image {
    std::shared_ptr<const Pieces> pieces;
    Time until = 0;
  };
  struct Process {
    std::shared_ptr<Pieces> live;  // a forked process shares it until one of both changes
    std::vector<Piece> gone;
    std::vector<Image> left;  // by exec
    Time changed = 0;
    ProcessNumber family = 0;
  };
  struct Beginning {
    Time time = 0;
    std::optional<ProcessNumber> parent;  // nullopt: an exec
  };

  void apply(const Change& change);
  static void retire(Process& process, Piece piece, Time time);
  [[nodiscard]] Pieces& to_change(Process& process);
  [[nodiscard]] static const Piece* piece_at(const Pieces& pieces, std::uint64_t address);
  void insert(Process& process, const Piece& piece);
  [[nodiscard]] const Beginning* beginning(ProcessNumber pid, Time time) const;

  std::deque<MappedFile> files_;
  std::vector<Change> changes_;
  std::unordered_map<ProcessNumber, Process> processes_;
  // Of all that had that number, in the order of time.
  std::unordered_map<ProcessNumber, std::vector<Beginning>> beginnings_;
  std::shared_ptr<base::RecordingBudget> budget_;
  std::map<ProcessNumber, std::uint64_t> copied_;  // bytes, by family
  std::map<ProcessNumber, std::uint64_t> emptied_;
};

}  // namespace pyinject::unwind
