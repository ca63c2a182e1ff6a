// The memory mappings of a process: /proc/PID/maps, proc_pid_maps(5).
#pragma once

#include "pyinject/base/pid.hpp"
#include "pyinject/base/remote_address.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::procfs {

struct Mapping {
  base::RemoteAddress begin;
  base::RemoteAddress end;  // one past the last byte
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  std::uint64_t offset = 0;        // in the file, bytes
  std::uint32_t device_major = 0;  // of the superblock; stat's st_dev differs on btrfs, overlayfs
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;  // 0: no file
  // The file, or a name such as "[heap]"; empty for anonymous memory. Relative to this process's
  // root as far as the kernel can express it, so not a safe way to access the file: see
  // open_mapped_file.
  std::string path;
  // The kernel appended " (deleted)" (removed from PATH). A file may also have such a name.
  bool deleted = false;

  [[nodiscard]] bool contains(base::RemoteAddress address) const {
    return begin <= address && address < end;
  }
  [[nodiscard]] std::uint64_t size() const { return end.value() - begin.value(); }
  bool operator==(const Mapping&) const = default;
};

// vm.max_map_count is 65530 by default; at most this many are kept.
inline constexpr std::size_t kMaxMappings = std::size_t{1} << 20;

// Skips lines that are not valid mappings (or end before they begin).
[[nodiscard]] std::vector<Mapping> parse_maps(std::string_view text);

// Empty for a process without memory (zombie, kernel thread). Errors as for read_stat().
[[nodiscard]] std::optional<std::vector<Mapping>> read_maps(base::Pid pid);

// The mapping that contains ADDRESS, or nullptr. MAPS must be in ascending order, as in /proc.
[[nodiscard]] const Mapping* find_mapping(const std::vector<Mapping>& maps,
                                          base::RemoteAddress address);

// Whether byte OFFSET of the file of MAPPING is mapped at ADDRESS. MAPS as above.
[[nodiscard]] bool shows(const std::vector<Mapping>& maps, const Mapping& mapping,
                         base::RemoteAddress address, std::uint64_t offset);

}  // namespace pyinject::procfs
