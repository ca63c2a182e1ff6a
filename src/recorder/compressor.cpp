#include "recorder/compressor.hpp"

#include "perfdata/file_header.hpp"
#include "perfdata/record.hpp"
#include "pyinject/base/error.hpp"
#include "recorder/contents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <linux/perf_event.h>

namespace pyinject::recorder {

namespace {

constexpr std::size_t kMostOfRecord = 65528;  // perf_event_header::size has 16 bits

}  // namespace

Compressor::Compressor(int level)
    : level_{level}, stream_{ZSTD_createCStream()}, record_(kMostOfRecord) {
  if (!stream_ || ZSTD_isError(ZSTD_initCStream(stream_.get(), level)) != 0) {
    throw base::Error{"no memory to compress"};
  }
}

void Compressor::write(perfdata::Bytes records, DataFile& file) {
  ZSTD_inBuffer from{records.data(), records.size(), 0};
  for (std::size_t left = records.size(); left != 0;) {
    ZSTD_outBuffer into{record_.data(), record_.size(), sizeof(perf_event_header)};
    left = ZSTD_compressStream2(stream_.get(), &into, &from, ZSTD_e_flush);
    if (ZSTD_isError(left) != 0) {
      throw base::Error{fmt::format("cannot compress: {}", ZSTD_getErrorName(left))};
    }
    const perf_event_header header{
        .type = perfdata::kCompressed, .misc = 0, .size = static_cast<std::uint16_t>(into.pos)};
    std::memcpy(record_.data(), &header, sizeof header);
    file.write(perfdata::Bytes{record_}.first(into.pos));
    written_ += into.pos;
  }
  taken_ += records.size();
}

FeatureContents Compressor::feature(std::size_t ring_bytes) const {
  constexpr std::uint32_t kVersion = 1;
  constexpr std::uint32_t kZstd = 1;
  Contents contents;
  contents.number(kVersion);
  contents.number(kZstd);
  contents.number(static_cast<std::uint32_t>(level_));
  contents.number(static_cast<std::uint32_t>(taken_ / std::max<std::uint64_t>(written_, 1)));
  contents.number(static_cast<std::uint32_t>(ring_bytes));
  return {.bit = perfdata::kFeatureCompressed, .bytes = contents.take()};
}

}  // namespace pyinject::recorder
