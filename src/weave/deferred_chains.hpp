// User parts of callchains that the kernel records later than the sample: when the thread returns
// to user space, which may be long after.
#pragma once

#include "perfdata/input.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::weave {

// Reads ahead of the reader of the samples. Holds the chains from the round of perf before that
// reader's up to the furthest one that was searched for, and never more than MOST_BYTES.
class DeferredChains {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{128} << 20U;

  // The kernel gives each entry of a thread into the kernel its own cookie.
  struct Key {
    std::uint32_t tid = 0;
    std::uint64_t cookie = 0;
    bool operator==(const Key&) const = default;
  };

  explicit DeferredChains(perfdata::Input ahead, std::size_t most_bytes = kMostBytes)
      : ahead_{std::move(ahead)}, most_bytes_{most_bytes} {}

  // Call it for each record of the file, in order, before the record's own chain is searched for.
  void pass(const perfdata::Record& record);
  // Innermost address first; valid until the next call. nullptr: not in the file, or full().
  [[nodiscard]] const std::vector<std::uint64_t>* find(const Key& key);
  // The last search has ended at MOST_BYTES instead of the end of the file.
  [[nodiscard]] bool full() const { return pending_.has_value(); }

 private:
  struct Chain {
    Key key;
    std::uint64_t number = 0;  // of its record in the file
    std::vector<std::uint64_t> addresses;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uint64_t>{}(key.cookie * 0x9e3779b97f4a7c15U + key.tid);
    }
  };

  [[nodiscard]] static std::size_t cost(const Chain& chain);
  [[nodiscard]] bool read_next();
  [[nodiscard]] bool hold_pending();
  void drop_front();

  perfdata::Input ahead_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::uint64_t read_ = 0;        // records read ahead
  std::uint64_t passed_ = 0;      // records passed
  std::uint64_t this_round_ = 0;  // PASSED_ at the start of the current round
  std::deque<Chain> chains_;      // in file order
  std::unordered_map<Key, const Chain*, Hash> by_key_;
  std::optional<Chain> pending_;  // read, but without room
};

}  // namespace pyinject::weave
