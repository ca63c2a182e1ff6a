// Decompresses COMPRESSED records: one zstd stream across all of them, so that its records may span
// two of them. The output is limited to a fixed buffer, whatever the input.
#pragma once

#include "perfdata/record.hpp"

#include <zstd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pyinject::perfdata {

class Decompressor {
 public:
  Decompressor();

  // Call it when next() has no more. COMPRESSED must stay valid until the next feed().
  void feed(Bytes compressed) { input_ = compressed; }
  // Not aligned; valid until the next call. nullopt: needs more input, or damage.
  [[nodiscard]] std::optional<Record> next();
  [[nodiscard]] const std::string& damage() const { return damage_; }
  void rewind();

 private:
  // True: there is more data than before.
  bool fill();

  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  Bytes input_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t filled_ = 0;
  std::string damage_;
};

}  // namespace pyinject::perfdata
