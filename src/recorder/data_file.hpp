// A new perf.data: linux, tools/perf/Documentation/perf.data-file-format.txt.
#pragma once

#include "perfdata/event.hpp"
#include "pyinject/base/unique_fd.hpp"
#include "recorder/open_events.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pyinject::recorder {

struct FeatureContents {
  unsigned bit = 0;  // HEADER_*
  std::vector<std::byte> bytes;
};

class DataFile {
 public:
  // An earlier file of this name becomes PATH.old, as with perf. All functions throw
  // base::SystemError.
  explicit DataFile(const std::string& path);

  // Writes the header, by which others can read the events while the recording goes on. Without
  // finish() the file looks like one of a perf that died.
  void begin(std::span<const OpenEvent> events);
  void write(perfdata::Bytes bytes);
  // Everything that was written so far is in the file.
  void flush();
  void finish(std::vector<FeatureContents> features);

  [[nodiscard]] std::uint64_t size() const { return written_ + buffer_.size(); }

 private:
  void write_start(std::span<const FeatureContents> features);

  std::string path_;
  base::UniqueFd fd_;
  std::vector<std::byte> buffer_;  // data after the first written_ bytes
  std::uint64_t written_ = 0;
  std::uint64_t attributes_at_ = 0;
  std::uint64_t attributes_bytes_ = 0;
  std::uint64_t data_at_ = 0;
  std::uint64_t data_bytes_ = 0;  // 0: not finished
};

}  // namespace pyinject::recorder
