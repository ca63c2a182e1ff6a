#include "perfdata/decompressor.hpp"

#include "perfdata/record_reader.hpp"
#include "pyinject/base/error.hpp"

#include <fmt/format.h>

#include <cstring>

namespace pyinject::perfdata {

namespace {

constexpr std::size_t kBuffer = std::size_t{256} << 10U;  // several times the size of a record
// perf compresses with windows of up to 8 MiB (level 22: 128 MiB).
constexpr int kMostWindowLog = 27;

}  // namespace

Decompressor::Decompressor() : stream_{ZSTD_createDStream()}, buffer_(kBuffer) {
  if (!stream_) {
    throw base::Error{"no memory to decompress"};
  }
  ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMostWindowLog);
}

void Decompressor::rewind() {
  ZSTD_DCtx_reset(stream_.get(), ZSTD_reset_session_only);
  input_ = {};
  begin_ = 0;
  filled_ = 0;
  damage_.clear();
}

bool Decompressor::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, filled_ - begin_);
  filled_ -= begin_;
  begin_ = 0;
  ZSTD_inBuffer from{input_.data(), input_.size(), 0};
  ZSTD_outBuffer into{buffer_.data(), buffer_.size(), filled_};
  const std::size_t result = ZSTD_decompressStream(stream_.get(), &into, &from);
  if (ZSTD_isError(result) != 0) {
    damage_ = fmt::format("compressed data: {}", ZSTD_getErrorName(result));
    return false;
  }
  const bool progress = into.pos != filled_ || from.pos != 0;
  input_ = input_.subspan(from.pos);
  filled_ = into.pos;
  return progress;
}

std::optional<Record> Decompressor::next() {
  while (damage_.empty()) {
    const auto record = first_record(Bytes{buffer_}.subspan(begin_, filled_ - begin_));
    if (record && record->bytes.empty()) {
      damage_ = "a record of size 0 in compressed data";
    } else if (record) {
      begin_ += record->bytes.size();
      return record;
    } else if (!fill()) {
      break;
    }
  }
  return std::nullopt;
}

}  // namespace pyinject::perfdata
