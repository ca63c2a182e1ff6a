// The line on a terminal that shows how much of a large file has been read.
#pragma once

#include <chrono>
#include <string>

namespace pyinject::cli {

// Returns what to write to the terminal.
class ReadingProgress {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // FILE: printable. BEGIN: when reading starts.
  ReadingProgress(std::string file, Time begin);
  // The line, if one is due: after a second, then five times a second. DONE: 0 to 1.
  [[nodiscard]] std::string line(double done, Time now);
  // Erases the line, if there is one.
  [[nodiscard]] std::string end();

 private:
  std::string file_;
  Time next_;
  bool drawn_ = false;
};

}  // namespace pyinject::cli
