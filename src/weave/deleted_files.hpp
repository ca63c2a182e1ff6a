// Executables and libraries that were deleted, as by an upgrade, while a process had them mapped.
#pragma once

#include "perfdata/output.hpp"
#include "unwind/address_spaces.hpp"
#include "unwind/objects.hpp"
#include "weave/weave.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace pyinject::weave {

class DeletedFiles {
 public:
  // SPACES is complete.
  explicit DeletedFiles(const unwind::AddressSpaces& spaces);

  // Notes which of them ADDRESSES are in. Of mappings that overlap, in different processes, it
  // notes one.
  void note(std::span<const std::uint64_t> addresses);
  // perf finds the names of their functions in its cache, by the build-id that it could not read
  // from a path: adds them to IDS, and returns those that must be in the cache.
  [[nodiscard]] std::vector<ReplacedFile> replace(unwind::FileFinder& files,
                                                  std::vector<perfdata::BuildId>& ids) const;

 private:
  std::vector<const unwind::MappedFile*> all_;                     // by the begin of their mappings
  std::map<std::string_view, const unwind::MappedFile*> noted_{};  // by path
};

}  // namespace pyinject::weave
