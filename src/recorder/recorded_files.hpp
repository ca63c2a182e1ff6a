// The files with code that processes of a recording have mapped, for the table of build ids.
#pragma once

#include "perfdata/input.hpp"
#include "perfdata/record.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pyinject::recorder {

class RecordedFiles {
 public:
  void add(const perfdata::Mapping& mapping);

  // Opens those that have the recorded inode in this process's root; devices and FIFOs never. Of at
  // most kMost files.
  static constexpr std::size_t kMost = 4096;
  [[nodiscard]] std::vector<perfdata::BuildId> build_ids() const;

 private:
  std::set<std::pair<std::string, std::uint64_t>> files_;  // name, inode
};

// The id of the running kernel in NOTES, the contents of /sys/kernel/notes; empty: it has none.
[[nodiscard]] std::vector<std::byte> kernel_build_id(perfdata::Bytes notes);

}  // namespace pyinject::recorder
