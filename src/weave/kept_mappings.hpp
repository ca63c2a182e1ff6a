// Which of the bytes that system calls have mapped are still mapped at the end of a recording, by
// call; and which of those that an allocator tells are not freed. Pure.
#pragma once

#include "pyinject/weave/weave_flags.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::weave {

class KeptMappings {
 public:
  using Kind = MemoryCall::Kind;
  // The call's first three arguments.
  using Arguments = std::array<std::uint64_t, 3>;
  struct Thread {
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
  };

  // Call these in any order, then complete(). Times are by the recording's clock.
  // Nothing leaves kAllocate and kFree.
  void enters(Thread thread, std::uint64_t time, Kind kind, const Arguments& arguments);
  void leaves(Thread thread, std::uint64_t time, Kind kind, std::uint64_t result);
  // The process executes another program, or has exited: all its memory is given back.
  void ends(std::uint32_t pid, std::uint64_t time);
  // What calls have mapped since YOUNG_SINCE is not kept: it may be in use for a moment.
  void complete(std::uint64_t young_since);

  // Of the call that TID entered at TIME.
  [[nodiscard]] std::uint64_t of(std::uint32_t tid, std::uint64_t time) const;

  [[nodiscard]] std::uint64_t mapped() const { return mapped_; }  // bytes, by all calls
  [[nodiscard]] std::uint64_t kept() const { return kept_; }      // bytes of them, at the end
  [[nodiscard]] std::uint64_t young() const { return young_; }    // likewise, since YOUNG_SINCE
  // Calls of brk whose length is unknown, since it is the distance from the last call: the first
  // one of a process. It counts as 0.
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }
  // There were too many calls: what follows is missing.
  [[nodiscard]] bool full() const { return moments_.size() >= kMostMoments; }

 private:
  static constexpr std::size_t kMostMoments = std::size_t{1} << 24U;  // 900 MB
  enum class What : std::uint8_t { kEnters, kLeaves, kEnds };
  struct Moment {
    std::uint64_t time = 0;
    Thread thread;
    What what{};
    Kind kind{};
    Arguments values{};  // arguments; the result
  };
  using Owner = std::uint32_t;  // index in owners_
  struct Call {
    std::uint32_t tid = 0;
    std::uint64_t time = 0;
    std::uint64_t bytes = 0;
  };
  struct Piece {
    std::uint64_t end = 0;
    Owner owner = 0;
  };
  using Pieces = std::map<std::uint64_t, Piece>;  // by begin; they do not overlap
  struct Process {
    Pieces pieces;
    std::optional<std::uint64_t> heap_end;
    std::unordered_map<std::uint64_t, Owner> blocks;  // of kAllocate, by address
  };
  // A call that has not returned.
  struct Pending {
    Kind kind{};
    std::uint64_t time = 0;
    Arguments arguments{};
    Pieces moved{};  // of kRemap
  };

  void add(const Moment& moment);
  void enter(const Moment& moment);
  void leave(const Moment& moment);
  void end(std::uint32_t pid);
  void allocate(const Moment& moment);
  void free(Process& process, std::uint64_t address);
  void remap(Process& process, const Pending& call, std::uint32_t tid, std::uint64_t result);
  void set_heap_end(Process& process, const Pending& call, std::uint32_t tid, std::uint64_t result);
  Owner owner(std::uint32_t tid, std::uint64_t time);
  void insert(Pieces& pieces, std::uint64_t begin, std::uint64_t end, Owner owner);
  // The same for memory that is new.
  void map(Pieces& pieces, std::uint64_t begin, std::uint64_t end, Owner owner);
  // Fills what no call is known to have mapped.
  void fill(Pieces& pieces, std::uint64_t begin, std::uint64_t end, Owner owner);
  // Returns what was there.
  Pieces remove(Pieces& pieces, std::uint64_t begin, std::uint64_t end);

  std::vector<Moment> moments_;
  std::vector<Call> owners_;
  std::unordered_map<std::uint32_t, Process> processes_;
  std::unordered_map<std::uint32_t, Pending> pending_;  // by tid
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> kept_of_;
  std::uint64_t mapped_ = 0;
  std::uint64_t kept_ = 0;
  std::uint64_t young_ = 0;
  std::uint64_t unknown_ = 0;
};

}  // namespace pyinject::weave
