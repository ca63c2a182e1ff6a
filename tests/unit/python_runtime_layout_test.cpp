#include "python/runtime_layout.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace pyinject::python {
namespace {

constexpr Version k313{.major = 3, .minor = 13, .micro = 5, .level = 0xf, .serial = 0};

// The published offsets of 3.13: index of the u64, value.
std::vector<std::byte> published_313() {
  std::vector<std::byte> bytes(kDebugOffsetsBytes);
  std::memcpy(bytes.data(), "xdebugpy", 8);
  for (const auto& [index, value] :
       std::initializer_list<std::pair<std::size_t, std::uint64_t>>{{1, 0x030d05f0},
                                                                    {3, 283376},
                                                                    {4, 608},
                                                                    {5, 632},
                                                                    {6, 194976},
                                                                    {7, 7272},
                                                                    {8, 7264},
                                                                    {9, 7344},
                                                                    {14, 16},
                                                                    {15, 7752},
                                                                    {17, 7768},
                                                                    {18, 7760},
                                                                    {21, 8},
                                                                    {22, 16},
                                                                    {24, 152}}) {
    std::memcpy(bytes.data() + index * 8, &value, 8);
  }
  return bytes;
}

void set(std::vector<std::byte>& bytes, std::size_t index, std::uint64_t value) {
  std::memcpy(bytes.data() + index * 8, &value, 8);
}

std::string problem(const std::vector<std::byte>& bytes, Version version = k313) {
  const auto layout = parse_layout(version, bytes);
  const auto* text = std::get_if<std::string>(&layout);
  return text == nullptr ? "" : *text;
}

TEST(ParseLayout, TakesPublishedOffsets) {
  const auto parsed = parse_layout(k313, published_313());
  ASSERT_TRUE(std::holds_alternative<RuntimeLayout>(parsed)) << std::get<std::string>(parsed);
  const auto& layout = std::get<RuntimeLayout>(parsed);
  EXPECT_EQ(layout.interpreters_main, 640U);
  EXPECT_EQ(layout.main_thread, 656U);
  EXPECT_EQ(layout.initialized, 600U);
  EXPECT_EQ(layout.threads_head, 7344U);
  EXPECT_EQ(layout.gil_last_holder, 8U);
  EXPECT_EQ(layout.gil_locked, 16U);
  EXPECT_FALSE(layout.free_threaded);
}

TEST(ParseLayout, RefusesForgedOffsets) {
  auto bytes = published_313();
  bytes[0] = std::byte{0};
  EXPECT_NE(problem(bytes), "");

  bytes = published_313();
  set(bytes, 1, 0x030e00f0);
  EXPECT_NE(problem(bytes).find("the debug offsets say 3.14.0"), std::string::npos);

  for (const std::size_t index : {3U, 4U, 5U, 6U, 7U, 8U, 9U, 14U, 15U, 17U, 18U, 21U, 22U, 24U}) {
    for (const std::uint64_t value : {~std::uint64_t{0}, std::uint64_t{1} << 40U}) {
      bytes = published_313();
      set(bytes, index, value);
      EXPECT_NE(problem(bytes), "") << "index " << index;
    }
  }
  EXPECT_NE(problem({}), "");
}

TEST(ParseLayout, KnowsNoFutureVersion) {
  EXPECT_NE(
      problem(published_313(), {.major = 3, .minor = 16, .micro = 0, .level = 0xf, .serial = 0}),
      "");
}

TEST(ParseLayout, SeesFreeThreadedBuilds) {
  auto bytes = published_313();
  set(bytes, 2, 1);
  const auto parsed = parse_layout(k313, bytes);
  ASSERT_TRUE(std::holds_alternative<RuntimeLayout>(parsed));
  EXPECT_TRUE(std::get<RuntimeLayout>(parsed).free_threaded);
}

}  // namespace
}  // namespace pyinject::python
