#include "memory/steady_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <unistd.h>

namespace pyinject::memory {
namespace {

base::RemoteAddress address_of(const void* place) {
  return base::RemoteAddress{reinterpret_cast<std::uint64_t>(place)};
}

TEST(SteadyMemory, KeepsWhatItReadDuringAStop) {
  volatile std::uint64_t value = 1;
  const auto place = base::RemoteAddress{reinterpret_cast<std::uint64_t>(&value)};
  SteadyMemory memory{std::make_unique<ProcessMemory>(base::Pid{::getpid()})};
  EXPECT_EQ(memory.read_value<std::uint64_t>(place), 1U);
  memory.set_steady(true);
  EXPECT_EQ(memory.read_value<std::uint64_t>(place), 1U);
  value = 2;
  EXPECT_EQ(memory.read_value<std::uint64_t>(place), 1U);
  memory.set_steady(true);
  EXPECT_EQ(memory.read_value<std::uint64_t>(place), 2U) << "another stop";
  value = 3;
  memory.set_steady(false);
  EXPECT_EQ(memory.read_value<std::uint64_t>(place), 3U);
}

TEST(SteadyMemory, ReadsAcrossPagesAndRefusesUnmappedMemory) {
  std::array<std::byte, 12288> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes.at(i) = static_cast<std::byte>(i % 251);
  }
  SteadyMemory memory{std::make_unique<ProcessMemory>(base::Pid{::getpid()})};
  memory.set_steady(true);
  std::array<std::byte, 4000> part{};
  for (const std::size_t from : {std::size_t{0}, std::size_t{3000}, std::size_t{8000}}) {
    ASSERT_TRUE(memory.read(address_of(bytes.data() + from), part));
    EXPECT_TRUE(
        std::equal(part.begin(), part.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from)));
  }
  EXPECT_FALSE(memory.read(base::RemoteAddress{16}, std::span{part}.first(8)));
  EXPECT_FALSE(memory.read(base::RemoteAddress{~std::uint64_t{0} - 4}, std::span{part}.first(8)));
}

}  // namespace
}  // namespace pyinject::memory
