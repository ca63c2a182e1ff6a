#include "python/layout/runtime_layout.hpp"

#include "python/layout/layout_facts.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace pyinject::python {
namespace {

constexpr Version k313{.major = 3, .minor = 13, .micro = 5, .level = 0xf, .serial = 0};

// The published offsets of 3.13: index of the 64-bit word, value.
std::vector<std::byte> published_313() {
  std::vector<std::byte> bytes(kDebugOffsetsBytes);
  std::memcpy(bytes.data(), "xdebugpy", 8);
  for (const auto& [index, value] : std::initializer_list<std::pair<std::size_t, std::uint64_t>>{
           {1, 0x030d05f0}, {3, 283376}, {4, 608},  {5, 632},   {6, 194976}, {7, 7272},
           {8, 7264},       {9, 7344},   {14, 16},  {15, 7752}, {17, 7768},  {18, 7760},
           {21, 8},         {22, 16},    {24, 152}, {20, 0},    {23, 72},    {25, 160},
           {28, 80},        {29, 8},     {30, 0},   {31, 56},   {33, 70},    {34, 208},
           {35, 112},       {37, 128},   {38, 136}, {39, 68},   {43, 200},   {45, 8},
           {65, 16},        {66, 32},    {68, 32},  {69, 16},   {70, 40}}) {
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

  for (const std::size_t index :
       {3U, 4U, 5U, 6U, 7U, 8U, 9U, 14U, 15U, 17U, 18U, 21U, 22U, 24U, 25U}) {
    for (const std::uint64_t value : {~std::uint64_t{0}, std::uint64_t{1} << 40U}) {
      bytes = published_313();
      set(bytes, index, value);
      EXPECT_NE(problem(bytes), "") << "index " << index;
    }
  }
  EXPECT_NE(problem({}), "");
}

// Its table has the size of 3.13's, not that of the newest version.
TEST(ParseLayout, RefusesTheTableOfAFutureVersionThatHasAnotherSize) {
  auto bytes = published_313();
  set(bytes, 1, 0x031000f0);
  EXPECT_NE(problem(bytes, {.major = 3, .minor = 16, .micro = 0, .level = 0xf, .serial = 0})
                .find("584 bytes of offsets"),
            std::string::npos);
}

TEST(ParseLayout, SeesFreeThreadedBuilds) {
  auto bytes = published_313();
  set(bytes, 2, 1);
  EXPECT_NE(problem(bytes), "") << "the head of its objects is longer";
  for (const std::size_t index :
       {17U, 18U, 34U, 35U, 37U, 38U, 39U, 43U, 45U, 65U, 66U, 68U, 69U, 70U}) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + index * 8, 8);
    set(bytes, index, value + (index < 20 ? 8 : 16));
  }
  EXPECT_EQ(problem(bytes), "");
  const auto parsed = parse_layout(k313, bytes);
  ASSERT_TRUE(std::holds_alternative<RuntimeLayout>(parsed));
  const auto& layout = std::get<RuntimeLayout>(parsed);
  EXPECT_TRUE(layout.free_threaded);
  EXPECT_EQ(layout.stack.int_digits, 40U);
  EXPECT_EQ(layout.stack.text_form, kTextForm);
}

TEST(TextForm, FreeThreadedBuildsStoreInternedInAByte) {
  const auto form = kTextForm.after(8);
  EXPECT_EQ(form.kind_shift, 8U);
  EXPECT_EQ(form.compact, 0x800U);
  EXPECT_EQ(form.ascii, 0x1000U);
}

TEST(ParseLayout, KnowsFramesAndCodeObjects) {
  const auto parsed = parse_layout(k313, published_313());
  ASSERT_TRUE(std::holds_alternative<RuntimeLayout>(parsed));
  const auto& stack = std::get<RuntimeLayout>(parsed).stack;
  EXPECT_EQ(stack.current_frame, 72U);
  EXPECT_EQ(stack.native_thread_id, 160U);
  EXPECT_EQ(stack.frame_size, 80U);
  EXPECT_EQ(stack.instruction, 56U);
  EXPECT_EQ(stack.owner, 70U);
  EXPECT_EQ(stack.stack_end, 64U);
  EXPECT_EQ(stack.qualified_name, 128U);
  EXPECT_EQ(stack.first_line, 68U);
  EXPECT_EQ(stack.byte_code, 200U);
  EXPECT_EQ(stack.bytes_data, 32U);
  EXPECT_EQ(stack.text_state, 32U);
  EXPECT_EQ(stack.ascii_data, 40U);
}

TEST(ParseLayout, FramesAndCodeObjectsMayBeForged) {
  for (const std::size_t index :
       {23U, 28U, 29U, 30U, 31U, 33U, 35U, 37U, 38U, 39U, 43U, 45U, 65U, 66U, 68U, 69U, 70U}) {
    for (const std::uint64_t value : {~std::uint64_t{0}, std::uint64_t{1} << 40U}) {
      auto bytes = published_313();
      set(bytes, index, value);
      EXPECT_NE(problem(bytes), "") << "index " << index;
    }
  }
}

}  // namespace
}  // namespace pyinject::python
