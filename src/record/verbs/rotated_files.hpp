// Names the files of repeated recordings and removes old ones.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>

namespace pyinject::record {

class RotatedFiles {
 public:
  // Includes existing files: PREFIX, a dot and 16 digits.
  RotatedFiles(std::string prefix, std::size_t keep);

  // "PREFIX.2026112022060912", an unused name.
  [[nodiscard]] std::string name_at(std::chrono::system_clock::time_point time) const;
  // PATH is complete, if it exists; returns whether it does. Removes the oldest files beyond KEEP,
  // with their raw files and their names. Throws base::SystemError on failure and does not retry.
  bool add(const std::string& path);
  // Oldest first.
  [[nodiscard]] const std::deque<std::string>& paths() const { return paths_; }

 private:
  std::string prefix_;
  std::size_t keep_;
  std::deque<std::string> paths_;
};

}  // namespace pyinject::record
