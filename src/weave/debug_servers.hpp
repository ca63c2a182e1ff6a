// Separate files with symbols from the servers in DEBUGINFOD_URLS, by libdebuginfod (elfutils),
// which also keeps them, in ~/.cache/debuginfod_client. debuginfod_find_debuginfo(3).
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace pyinject::weave {

class DebugServers {
 public:
  // For all files together.
  static constexpr std::chrono::seconds kMost{30};

  // Whether libdebuginfod is installed, and this program can load it.
  [[nodiscard]] static bool usable();

  explicit DebugServers(std::chrono::milliseconds most = kMost) : most_{most} {}
  ~DebugServers();
  DebugServers(const DebugServers&) = delete;
  DebugServers& operator=(const DebugServers&) = delete;

  // The file with the symbols of the file with BUILD_ID, in hexadecimal. Invalid: no server has it,
  // none is named, or the time is over.
  [[nodiscard]] base::UniqueFd debug_file(const std::string& build_id);
  // The time was over before all files were there.
  [[nodiscard]] bool late() const { return late_; }

 private:
  std::chrono::milliseconds most_;
  void* client_ = nullptr;
  std::optional<base::Deadline> deadline_;  // from the first file on
  bool late_ = false;
};

}  // namespace pyinject::weave
