// Finds the files that recorded processes had mapped.
#pragma once

#include "procfs/maps.hpp"
#include "pyinject/base/pid.hpp"
#include "unwind/objects.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyinject::weave {

// Searches files that were kept open; the process's own mappings and file system, if it still runs;
// this machine's file system; perf's build-id cache and separate debug files, by build-id. A file
// at a path is accepted only if inode or build-id prove that it is the mapped one.
class RecordedFiles : public unwind::FileFinder {
 public:
  RecordedFiles();

  // Opens files of PID that may not exist later: deleted files, and those of a file system that is
  // not this tool's. They stay open as long as this object.
  void keep(base::Pid pid);

  [[nodiscard]] std::vector<base::UniqueFd> candidates(const unwind::MappedFile& file) override;

 private:
  [[nodiscard]] const std::vector<procfs::Mapping>& mappings(std::uint32_t pid);

  std::vector<std::string> build_id_folders_;
  struct Kept {
    std::uint64_t inode = 0;
    std::string path;  // as this tool sees it
    base::UniqueFd file;
  };
  std::map<std::uint32_t, std::vector<Kept>> kept_;  // by process
  std::size_t descriptors_ = 0;
  std::unordered_map<std::uint32_t, std::vector<procfs::Mapping>> mappings_;
};

}  // namespace pyinject::weave
