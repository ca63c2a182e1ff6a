// The names of threads over time, from COMM and FORK records.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::report {

class ThreadNames {
 public:
  // Call these in any order, then complete().
  void name(std::uint64_t time, std::uint32_t tid, std::string name);
  // TID is started by PARENT_TID, and has its name at first.
  void start(std::uint64_t time, std::uint32_t parent_tid, std::uint32_t tid);
  void complete();

  // Empty: unknown.
  [[nodiscard]] const std::string& at(std::uint64_t time, std::uint32_t tid) const;

 private:
  struct Change {
    std::uint64_t time = 0;
    std::string name{};
    std::uint32_t parent = 0;  // 0: NAME is given
  };
  std::unordered_map<std::uint32_t, std::vector<Change>> threads_;
};

}  // namespace pyinject::report
