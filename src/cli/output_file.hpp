// The file, pipe or standard output that a page or an export is written to.
#pragma once

#include "pyinject/base/directory.hpp"
#include "pyinject/base/unique_fd.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace pyinject::cli {

// Where a result goes: a file, which appears under its name when it is complete, or, for "-",
// standard output. All functions throw base::Error.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  void write(std::string_view text);
  // Without it, the file does not appear.
  void complete();

 private:
  std::string path_;
  std::optional<base::Place> place_;  // nullopt: standard output
  std::optional<base::NewFile> file_{};
  base::UniqueFd device_{};  // or a pipe: written as it is
};

}  // namespace pyinject::cli
