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
  base::RemoteAddress end;  // the first byte behind it
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  std::uint64_t offset = 0;        // in the file, bytes
  std::uint32_t device_major = 0;  // of the superblock: on btrfs and overlayfs not stat's st_dev
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;  // 0: no file
  // The file, or a name such as "[heap]"; empty for anonymous memory. It is what the kernel can
  // name from this process's root, so it is no safe way to the file: see open_mapped_file.
  std::string path;
  // The kernel appended " (deleted)" (removed from PATH). A file may be called so, too.
  bool deleted = false;

  [[nodiscard]] bool contains(base::RemoteAddress address) const {
    return begin <= address && address < end;
  }
  [[nodiscard]] std::uint64_t size() const { return end.value() - begin.value(); }
  bool operator==(const Mapping&) const = default;
};

// vm.max_map_count is 65530 by default; no more than this many are kept.
inline constexpr std::size_t kMaxMappings = std::size_t{1} << 20;

// Lines that are no mapping (or whose end is not behind their begin) are left out.
[[nodiscard]] std::vector<Mapping> parse_maps(std::string_view text);

// A process without memory (zombie, kernel thread) gives an empty list. nullopt and exceptions are
// those of read_stat().
[[nodiscard]] std::optional<std::vector<Mapping>> read_maps(base::Pid pid);

// The mapping that holds ADDRESS, or nullptr. MAPS in ascending order, as the kernel gives them.
[[nodiscard]] const Mapping* find_mapping(const std::vector<Mapping>& maps,
                                          base::RemoteAddress address);

}  // namespace pyinject::procfs
