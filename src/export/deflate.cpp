#include "export/deflate.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <string_view>

#include <zlib.h>

namespace pyinject::exports {

namespace {

constexpr int kLevel = 6;
constexpr int kMemory = 8;
constexpr int kZlib = 15;  // bits of the window
constexpr int kGzip = kZlib + 16;

std::string compressed(std::string_view data, int format) {
  z_stream stream{};
  if (::deflateInit2(&stream, kLevel, Z_DEFLATED, format, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc{};
  }
  std::string result;
  std::array<char, std::size_t{1} << 16U> piece{};
  int status = Z_OK;
  while (status == Z_OK) {
    const auto size = std::min<std::size_t>(data.size(), std::numeric_limits<uInt>::max());
    // zlib does not write to its input, but its interface predates const.
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));  // NOLINT(*-const-cast)
    stream.avail_in = static_cast<uInt>(size);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    status = ::deflate(&stream, size == data.size() ? Z_FINISH : Z_NO_FLUSH);
    data.remove_prefix(size - stream.avail_in);
    result.append(piece.data(), piece.size() - stream.avail_out);
  }
  ::deflateEnd(&stream);
  if (status != Z_STREAM_END) {
    throw std::bad_alloc{};
  }
  return result;
}

}  // namespace

std::string deflated(std::string_view data) { return compressed(data, kZlib); }

std::string gzipped(std::string_view data) { return compressed(data, kGzip); }

std::string base64(std::string_view data) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve((data.size() + 2) / 3 * 4);
  for (; !data.empty(); data.remove_prefix(std::min<std::size_t>(3, data.size()))) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8U | (i < data.size() ? static_cast<unsigned char>(data[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      result += i <= data.size() ? kDigits[bits >> (18U - 6U * i) & 63U] : '=';
    }
  }
  return result;
}

}  // namespace pyinject::exports
