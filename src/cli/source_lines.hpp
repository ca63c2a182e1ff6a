// The lines of a process's sources for `dump`.
#pragma once

#include "pyinject/base/deadline.hpp"
#include "pyinject/base/pid.hpp"
#include "report/annotation.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::cli {

class SourceLines {
 public:
  // Of a process that runs. A file that was changed after the process started is not shown: its
  // lines may be others than those that run.
  explicit SourceLines(base::Pid pid);
  // Of a process whose core file was written at WRITTEN.
  SourceLines(base::Pid pid, std::time_t written);

  // Line LINE of FILE without white space around it; empty: the file has none, is newer, or may not
  // be shown (cli/source_file.hpp).
  [[nodiscard]] std::string line(const std::string& file, std::uint32_t line);
  // "without the source of /srv/shop.py: it was changed after the process started", or what else is
  // missing; empty: nothing.
  [[nodiscard]] std::string note() const;

 private:
  // nullopt: the file system does not answer, as that of a dead server. Then no further file is
  // read in this run: the thread that waits for it stays until the end.
  [[nodiscard]] std::optional<report::SourceFile> read(const std::string& file);

  base::Pid pid_;
  std::optional<std::time_t> valid_;  // files that are newer are not shown
  bool core_ = false;
  report::ReadSource read_;
  std::map<std::string, std::vector<std::string>> files_;
  std::vector<std::string> newer_;
  base::Deadline until_ = base::Deadline::after(std::chrono::seconds{2});
  std::string silent_;  // the file that could not be read until then
};

}  // namespace pyinject::cli
