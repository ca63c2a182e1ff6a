// Where `perf record` writes, and what it reports about it.
//
// For example:
//   const perf::OutputRollback before{perf::Output{.path = "perf.data"}};
//   before.undo();  // removes what perf has written since
#pragma once

#include "pyinject/base/directory.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace pyinject::perf {

struct Output {
  std::string path = "perf.data";  // a directory with --threads
  bool pipe = false;               // to stdout
  bool several = false;            // --switch-output, --timestamp-filename: PATH is a prefix
};

struct WrittenFile {
  std::string path;
  double megabytes = 0;
  std::optional<std::uint64_t> samples;
  bool approximate = false;  // "~12 samples"
};

// Parses all "[ perf record: Captured and wrote 0.1 MB perf.data (12 samples) ]" and "[ perf
// record: Dump perf.data.2026... ]" lines of perf's stderr.
[[nodiscard]] std::vector<WrittenFile> parse_written_files(std::string_view errors);
// The same for OUTPUT, whose name may contain anything, such as a newline.
[[nodiscard]] std::vector<WrittenFile> parse_written_files(std::string_view errors,
                                                           const Output& output);

// perf renames an existing file to PATH.old when it starts. This undoes the rename if nothing was
// recorded, so that a refused recording leaves the directory unchanged.
class OutputRollback {
 public:
  // Create it before perf starts.
  explicit OutputRollback(Output output);
  // Call it after perf has exited, and only if its file holds nothing: removes the file and
  // restores the old one.
  void undo() const;

 private:
  Output output_;
  std::optional<base::Place> place_;
  std::optional<ino_t> before_;
};

}  // namespace pyinject::perf
