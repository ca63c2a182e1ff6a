// Records in COMPRESSED records, one zstd stream across all of them: linux,
// tools/perf/util/zstd.c and builtin-record.c, zstd_compress().
#pragma once

#include "perfdata/event.hpp"
#include "recorder/data_file.hpp"

#include <zstd.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace pyinject::recorder {

class Compressor {
 public:
  // LEVEL: 1 to 22. Throws base::Error if there is no memory.
  explicit Compressor(int level);

  // Writes RECORDS to FILE, which has all of them afterwards.
  void write(perfdata::Bytes records, DataFile& file);

  // HEADER_COMPRESSED: LEVEL, the ratio so far, and RING_BYTES, which readers take for the most
  // that a COMPRESSED record has inside.
  [[nodiscard]] FeatureContents feature(std::size_t ring_bytes) const;

 private:
  struct End {
    void operator()(ZSTD_CStream* stream) const { ZSTD_freeCStream(stream); }
  };
  int level_;
  std::unique_ptr<ZSTD_CStream, End> stream_;
  std::vector<std::byte> record_;
  std::uint64_t taken_ = 0;  // bytes
  std::uint64_t written_ = 0;
};

}  // namespace pyinject::recorder
