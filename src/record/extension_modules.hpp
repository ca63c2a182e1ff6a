// Finds C code in a target that breaks frame-pointer callchains.
#pragma once

#include "pyinject/base/pid.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace pyinject::record {

class ExtensionModules {
 public:
  // The file of an extension module of PID, or of a library that came with one, that was built
  // without frame pointers: it may use their register for other values, which hides its callers
  // from the unwinder. nullopt: none. Reads each file once: 1 to 2 ms.
  [[nodiscard]] std::optional<std::string> without_frame_pointers(base::Pid pid);

 private:
  std::map<std::pair<std::uint64_t, std::uint64_t>, bool> known_;  // by device and inode
};

}  // namespace pyinject::record
