// Names for threads that the kernel knows only by the name of their process, as they were read
// while perf recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace pyinject::weave {

class CommHistory {
 public:
  static constexpr std::size_t kMostEntries = 65536;

  // Thread TID of process PID had this name at SEEN, by the recording's clock; 0: that is unknown.
  // Names after kMostEntries are dropped.
  void add(std::uint32_t pid, std::uint32_t tid, std::uint64_t seen, const std::string& name);
  [[nodiscard]] bool empty() const { return threads_.empty(); }

  // While the records of a file are learned: a thread TID was started at TIME. Another one may have
  // had the same tid before.
  void starts(std::uint32_t tid, std::uint64_t time);
  void forget_starts();

  // The last name of the thread TID of process PID that was started at BEGIN; 0: before the
  // recording. Null: none.
  [[nodiscard]] const std::string* find(std::uint32_t pid, std::uint32_t tid,
                                        std::uint64_t begin) const;
  // When the thread TID that runs at TIME was started, as above.
  [[nodiscard]] std::uint64_t begin_of(std::uint32_t tid, std::uint64_t time) const;

 private:
  struct Entry {
    std::uint32_t pid = 0;
    std::uint64_t first = 0;  // seen then, and
    std::uint64_t last = 0;
    std::string name{};
  };
  struct Thread {
    std::vector<Entry> entries;         // in order of time
    std::vector<std::uint64_t> starts;  // the same
  };
  std::unordered_map<std::uint32_t, Thread> threads_;
  std::size_t entries_ = 0;
};

}  // namespace pyinject::weave
