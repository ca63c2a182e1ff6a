#include "fuzz/fuzz.hpp"

#include "base/byte_cursor.hpp"
#include "base/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <sys/mman.h>

namespace pyinject::fuzz {

namespace {

std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

// The time to read a thousand bytes one by one in this build, with its sanitizers.
double time_of_thousand_reads() {
  constexpr int kThousands = 100;
  const std::vector<std::byte> bytes(1000);
  std::uint64_t sum = 0;
  const auto begin = processor_time();
  for (int i = 0; i < kThousands; ++i) {
    base::ByteCursor cursor{bytes};
    while (!cursor.at_end()) {
      sum += cursor.number<std::uint8_t>();
    }
  }
  const auto took = processor_time() - begin;
  require(sum == 0, "zeros are zeros");
  return static_cast<double>(took.count()) / kThousands;
}

// The limit in nanoseconds for an input of SIZE bytes: 10 million reads, plus 10 per byte.
double most_time(std::size_t size) {
  static const double unit =
      std::max({time_of_thousand_reads(), time_of_thousand_reads(), time_of_thousand_reads()});
  return unit * (10'000.0 + static_cast<double>(size) / 100.0);
}

}  // namespace

void run_in_time(const std::uint8_t* data, std::size_t size) {
  const auto most = most_time(size);
  const auto begin = processor_time();
  run({data, size});
  const auto took = static_cast<double>((processor_time() - begin).count());
  if (took > most) {
    fmt::print(stderr, "\n{} bytes took {:.1f} ms of processor time, more than {:.1f} ms\n", size,
               took / 1e6, most / 1e6);
  }
  require(took <= most, "an input takes no longer than one of its size may");
}

void require(bool holds, std::string_view what) {
  if (!holds) {
    fmt::print(stderr, "\nnot true: {}\n", what);
    std::abort();
  }
}

bool HostileMemory::read(base::RemoteAddress from, std::span<std::byte> into) const {
  ++reads_;
  constexpr std::uint64_t kLowerHalf = std::uint64_t{1} << 63U;
  if (bytes_.empty() || from.value() >= kLowerHalf) {
    return false;
  }
  std::size_t at = from.value() % bytes_.size();
  for (auto& byte : into) {
    byte = bytes_[at];
    at = at + 1 == bytes_.size() ? 0 : at + 1;
  }
  return true;
}

base::UniqueFd file_with(std::span<const std::byte> bytes) {
  base::UniqueFd file{::memfd_create("fuzz", MFD_CLOEXEC)};
  base::write_all(file.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                  "a memfd");
  return file;
}

// Implements the table of well-formed byte sequences, Unicode 15 table 3-7.
bool is_printable(std::string_view text) {
  std::size_t at = 0;
  const auto byte = [&](std::size_t index) -> unsigned {
    return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
  };
  while (at < text.size()) {
    std::uint32_t point = byte(at);
    std::size_t more = 0;
    if (point >= 0xf0) {
      more = 3;
      point &= 0x07U;
    } else if (point >= 0xe0) {
      more = 2;
      point &= 0x0fU;
    } else if (point >= 0xc0) {
      more = 1;
      point &= 0x1fU;
    } else if (point >= 0x80) {
      return false;
    }
    for (std::size_t i = 1; i <= more; ++i) {
      if ((byte(at + i) & 0xc0U) != 0x80) {
        return false;
      }
      point = point << 6U | (byte(at + i) & 0x3fU);
    }
    constexpr std::array<std::uint32_t, 4> kLeast{0x20, 0xa0, 0x800, 0x10000};
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (byte(at) > 0xf7 || point < kLeast.at(more) || point == 0x7f || point > 0x10ffff ||
        surrogate) {
      return false;
    }
    at += more + 1;
  }
  return true;
}

}  // namespace pyinject::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): what libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pyinject::fuzz::run_in_time(data, size);
  return 0;
}
