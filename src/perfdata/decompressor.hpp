// What COMPRESSED records hold: one zstd stream over all of them, whose records may begin in one
// and end in the next. What comes out is bounded by our buffer, whatever goes in.
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

  // To be called when next() has no more. COMPRESSED has to stay until then.
  void feed(Bytes compressed) { input_ = compressed; }
  // Not aligned; valid until the next call. nullopt: more input is needed, or damage.
  [[nodiscard]] std::optional<Record> next();
  [[nodiscard]] const std::string& damage() const { return damage_; }
  void rewind();

 private:
  // Whether there is more than before.
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
