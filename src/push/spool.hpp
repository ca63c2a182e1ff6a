// Requests on disk that no store has accepted yet: bounded, oldest first, for one process at a
// time.
#pragma once

#include "push/push_counts.hpp"
#include "push/stores.hpp"
#include "pyinject/base/directory.hpp"
#include "pyinject/base/log.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

namespace pyinject::push {

inline constexpr std::uint64_t kSpoolBytes = std::uint64_t{256} << 20U;

struct SpoolEntry {
  std::string id;           // of the delivery, a UUID
  std::string destination;  // Destination::name()
  Request request;
};

// /var/lib/perf-pyinject/spool for root, else perf-pyinject/spool in $XDG_STATE_HOME or
// ~/.local/state; creates the directories above it. Throws base::Error.
[[nodiscard]] std::string default_spool();

// The directory PATH, made with mode 0700 if it does not exist. Throws base::Error for a link, and
// for one of another user, or writable by others.
[[nodiscard]] base::Directory open_own_directory(std::string path);

// Each entry is a file, NANOSECONDS-UUID.push, which appears when it is complete and on the disk.
// Other files are left alone. Thread-safe.
class Spool {
 public:
  // Opens the directory PATH, whose mode must be 0700, with what an earlier run has left, and locks
  // it. Throws base::Error, also if another process uses it.
  Spool(const std::string& path, std::uint64_t most_bytes, base::Logger& logger);

  // If there is no room, drops the oldest entries that are not taken. Returns false, and drops
  // ENTRY, if it does not fit. Throws base::Error if it cannot be written.
  [[nodiscard]] bool add(const SpoolEntry& entry);
  // Takes the oldest entry of DESTINATION; nullopt: none is left. Drops entries that are damaged.
  [[nodiscard]] std::optional<SpoolEntry> take(const std::string& destination);
  // Ends the take().
  void put_back(const std::string& id);
  // Increments COUNTER in the same moment, for totals().
  void remove(const std::string& id, std::atomic<std::uint64_t>& counter);

  // LIVE with what is spooled and what the spool has dropped: no profile is missing or counted
  // twice while another thread removes it.
  [[nodiscard]] PushCounts totals(const LiveCounts& live) const;
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::size_t count(const std::string& destination) const;
  // Since the start: for lack of room, or damaged.
  [[nodiscard]] std::uint64_t dropped() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Known {
    std::string name;  // of the file
    std::string id;
    std::string destination;
    std::uint64_t bytes = 0;
    bool taken = false;
  };

  void lock();
  void find_entries();
  void find_entry(const std::string& name);
  void drop_oldest(std::uint64_t bytes);
  void forget(const std::deque<Known>::iterator& known);
  [[nodiscard]] std::deque<Known>::iterator find(const std::string& id);
  [[nodiscard]] std::string new_name(const std::string& id);

  std::string path_;
  std::uint64_t most_bytes_;
  base::Logger& logger_;
  base::Directory directory_;
  base::UniqueFd readable_;  // the directory, locked
  mutable std::mutex mutex_;
  std::deque<Known> known_;  // oldest first
  std::uint64_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t last_time_ = 0;
};

}  // namespace pyinject::push
