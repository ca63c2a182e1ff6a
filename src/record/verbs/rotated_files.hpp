// The files of repeated recordings: their names, and which of them go.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>

namespace pyinject::session {

class RotatedFiles {
 public:
  // Counts in the files that are there: PREFIX, a dot and 16 digits.
  RotatedFiles(std::string prefix, std::size_t keep);

  // "PREFIX.2026112022060912", a name that is not in use.
  [[nodiscard]] std::string name_at(std::chrono::system_clock::time_point time) const;
  // PATH is complete, if it has come to be. Removes the oldest ones beyond KEEP, their raw
  // files and their names. Throws base::SystemError when it cannot; it is not tried again.
  void add(const std::string& path);
  // Oldest first.
  [[nodiscard]] const std::deque<std::string>& paths() const { return paths_; }

 private:
  std::string prefix_;
  std::size_t keep_;
  std::deque<std::string> paths_;
};

}  // namespace pyinject::session
