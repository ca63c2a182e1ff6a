// Where `perf record` writes, and what it said about it.
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
  std::string path = "perf.data";  // a folder with --threads
  bool pipe = false;               // to stdout
  bool several = false;            // --switch-output, --timestamp-filename: PATH is a prefix
};

// What perf makes of these options. Without -o perf writes to stdout when that is a pipe.
[[nodiscard]] Output output_of(const std::vector<std::string>& options, bool stdout_is_pipe);

struct WrittenFile {
  std::string path;
  double megabytes = 0;
  std::optional<std::uint64_t> samples;
  bool approximate = false;  // "~12 samples"
};

// All "[ perf record: Captured and wrote 0.1 MB perf.data (12 samples) ]" and "[ perf record: Dump
// perf.data.2026... ]" lines of perf's stderr.
[[nodiscard]] std::vector<WrittenFile> parse_written_files(std::string_view errors);

// perf moves an old file to PATH.old when it starts. Undoes that when nothing was recorded, so that
// a refused recording leaves the folder as it was.
class OutputRollback {
 public:
  // To be made before perf starts.
  explicit OutputRollback(Output output);
  // After perf has ended, and only when its file holds nothing: removes it, puts the old one back.
  void undo() const;

 private:
  Output output_;
  std::optional<base::Place> place_;
  std::optional<ino_t> before_;
};

}  // namespace pyinject::perf
