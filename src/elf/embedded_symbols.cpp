#include "elf/embedded_symbols.hpp"

#include "base/file.hpp"
#include "elf/elf_impl.hpp"
#include "pyinject/base/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <lzma.h>
#include <sys/mman.h>

namespace pyinject::elf {

namespace {

constexpr std::uint64_t kMostCompressed = std::uint64_t{16} << 20U;
constexpr std::uint64_t kMostBytes = std::uint64_t{32} << 20U;
// What `xz -8` needs is 33 MiB; `xz` without a level 9 MiB.
constexpr std::uint64_t kMostMemory = std::uint64_t{40} << 20U;
constexpr std::size_t kPiece = std::size_t{64} << 10U;

class XzStream {
 public:
  XzStream() : usable_{::lzma_stream_decoder(&stream_, kMostMemory, 0) == LZMA_OK} {}
  ~XzStream() { ::lzma_end(&stream_); }
  XzStream(const XzStream&) = delete;
  XzStream& operator=(const XzStream&) = delete;

  // False: damaged, too large, or there is no room.
  bool copy(std::span<const std::byte> bytes, int file) {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
    stream_.avail_in = bytes.size();
    std::array<char, kPiece> piece{};
    auto result = usable_ ? LZMA_OK : LZMA_PROG_ERROR;
    while (result == LZMA_OK && stream_.total_out <= kMostBytes) {
      stream_.next_out = reinterpret_cast<std::uint8_t*>(piece.data());
      stream_.avail_out = piece.size();
      result = ::lzma_code(&stream_, LZMA_FINISH);
      base::write_all(file, std::string_view{piece.data(), piece.size() - stream_.avail_out},
                      "memory");
    }
    return result == LZMA_STREAM_END;
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool usable_;
};

}  // namespace

std::optional<ElfFile> embedded_symbols(const ElfFile& file) {
  const auto section = file.section(".gnu_debugdata");
  if (!section || !section->in_file || section->size > kMostCompressed ||
      !file.impl().contains(section->offset, section->size)) {
    return std::nullopt;
  }
  std::vector<std::byte> compressed(section->size);
  base::UniqueFd memory{::memfd_create("symbols", MFD_CLOEXEC)};
  if (!memory.valid() || !file.impl().read(compressed, section->offset)) {
    return std::nullopt;
  }
  try {
    if (!XzStream{}.copy(compressed, memory.get())) {
      return std::nullopt;
    }
  } catch (const base::Error&) {  // no memory for the file
    return std::nullopt;
  }
  auto opened = ElfFile::open(std::move(memory));
  auto* const elf = std::get_if<ElfFile>(&opened);
  return elf == nullptr ? std::nullopt : std::optional{std::move(*elf)};
}

}  // namespace pyinject::elf
