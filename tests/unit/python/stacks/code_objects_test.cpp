#include "python/stacks/code_objects.hpp"

#include "python/layout/layout_facts.hpp"
#include "python/stacks/line_table.hpp"
#include "python/stacks/remote_text.hpp"
#include "python/stacks/stack_assembly.hpp"
#include "unit/memory/fake_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace pyinject::python {
namespace {

using base::RemoteAddress;

StackLayout made_layout() {
  return {.file_name = 112,
          .qualified_name = 128,
          .line_table = 136,
          .first_line = 68,
          .byte_code = 208,
          .type = 8,
          .item_count = 16,
          .bytes_data = 32,
          .text_length = 16,
          .text_state = 32,
          .ascii_data = 40,
          .text_form = kTextForm};
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (const int value : values) {
    result.push_back(static_cast<std::byte>(value));
  }
  return result;
}

constexpr std::uint32_t kAscii = 0x64;  // compact, ASCII, one byte
constexpr std::uint64_t kType = 0x900;

class CodeObjectsTest : public testing::Test {
 protected:
  void text(std::uint64_t at, std::string_view content, std::uint32_t state = kAscii,
            std::size_t length = 0) {
    memory_.put(at + 16, std::uint64_t{length == 0 ? content.size() : length});
    memory_.put(at + 32, state);
    memory_.put_text(at + ((state & 0x40U) != 0 ? 40 : 56), content);
  }
  void code(std::uint64_t at, std::uint64_t name, std::uint64_t table = 0x8000) {
    memory_.put_zeros(at, 208);
    memory_.put(at + 8, kType);
    memory_.put(at + 16, std::uint64_t{10});
    memory_.put(at + 68, std::int32_t{7});
    memory_.put(at + 112, std::uint64_t{0x6000});
    memory_.put(at + 128, name);
    memory_.put(at + 136, table);
  }
  void SetUp() override {
    text(0x6000, "file.py");
    text(0x7000, "Class.method");
    memory_.put(0x8000 + 16, std::uint64_t{2});
    memory_.put(0x8000 + 32, bytes({0x80 | (11 << 3) | 7, 0}));
    code(0x5000, 0x7000);
  }
  [[nodiscard]] bool look_at(std::uint64_t address) {
    return codes_.look_at(std::array{RemoteAddress{address}});
  }
  [[nodiscard]] std::string name(std::uint64_t address) const {
    const auto* const found = codes_.find(RemoteAddress{address});
    return found == nullptr ? "none" : found->names.qualname;
  }

  test::FakeMemory memory_;
  CodeObjects codes_{memory_, made_layout(), RemoteAddress{kType}};
};

TEST_F(CodeObjectsTest, HaveNamesAndLines) {
  ASSERT_TRUE(look_at(0x5000));
  const auto* const found = codes_.find(RemoteAddress{0x5000});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->names,
            (CodeNames{.qualname = "Class.method", .file = "file.py", .first_line = 7}));
  const auto line = [&](std::uint64_t address) {
    return codes_.line(*found, RemoteAddress{0x5000}, RemoteAddress{address});
  };
  EXPECT_EQ(line(0x5000 + 208), 8U);
  EXPECT_EQ(line(0x5000 + 208 + 15), 8U);
  EXPECT_EQ(line(0x5000 + 208 + 16), 0U) << "not in the table";
  EXPECT_EQ(line(0x5000 + 208 + 20), 0U) << "after the instructions";
  EXPECT_EQ(line(0x5000 + 206), 7U) << "not started yet";
  EXPECT_EQ(line(0x5000), 0U);
  EXPECT_EQ(line(0), 0U);
}

TEST_F(CodeObjectsTest, AreReadOnceWhileTheyStayTheSame) {
  ASSERT_TRUE(look_at(0x5000));
  const auto serial = codes_.find(RemoteAddress{0x5000})->serial;
  const auto reads = memory_.reads();
  memory_.put(0x5000, std::uint64_t{99});  // reference count
  codes_.begin_round();
  EXPECT_EQ(name(0x5000), "none") << "not read in this round";
  ASSERT_TRUE(look_at(0x5000));
  EXPECT_EQ(memory_.reads(), reads + 1);
  EXPECT_EQ(codes_.find(RemoteAddress{0x5000})->serial, serial);

  codes_.begin_round();
  codes_.recognise(std::array{RemoteAddress{0x5000}, RemoteAddress{0x4000}});
  EXPECT_EQ(name(0x5000), "Class.method");
  EXPECT_EQ(name(0x4000), "none");

  // Another object at the same address with the same pointers: co_version differs.
  text(0x7000, "Class.change");
  memory_.put(0x5000 + 92, std::uint32_t{5});
  codes_.begin_round();
  codes_.recognise(std::array{RemoteAddress{0x5000}});
  EXPECT_EQ(name(0x5000), "none");
  ASSERT_TRUE(look_at(0x5000));
  EXPECT_EQ(name(0x5000), "Class.change");
  EXPECT_NE(codes_.find(RemoteAddress{0x5000})->serial, serial);
}

TEST_F(CodeObjectsTest, RefusesWhatIsNone) {
  EXPECT_FALSE(look_at(0x4000)) << "unreadable";
  memory_.put(0x5000 + 8, std::uint64_t{0x901});
  EXPECT_FALSE(look_at(0x5000)) << "another type";
  EXPECT_EQ(name(0x5000), "none");
  code(0x5000, 0x9999);
  EXPECT_FALSE(look_at(0x5000)) << "without a name";
  code(0x5000, 0x7000);
  EXPECT_TRUE(look_at(0x5000));
  memory_.put(0x5000 + 8, std::uint64_t{0});
  EXPECT_FALSE(look_at(0x5000)) << "not a code object any more";
  EXPECT_EQ(name(0x5000), "none");
}

TEST_F(CodeObjectsTest, ALineTableMayBeMissing) {
  for (const std::uint64_t size : {std::uint64_t{1} << 21U, ~std::uint64_t{0}, std::uint64_t{50}}) {
    memory_.put(0x8000 + 16, size);
    code(0x5000, 0x7000);
    memory_.put(0x5000 + 92, static_cast<std::uint32_t>(size));
    ASSERT_TRUE(look_at(0x5000));
    EXPECT_EQ(codes_.find(RemoteAddress{0x5000})->lines.line_at(0), 0U);
  }
}

TEST_F(CodeObjectsTest, ReadsTextsOfEachWidth) {
  const auto read = [&] { return read_text(memory_, made_layout(), RemoteAddress{0xa000}); };
  text(0xa000, "\xe9", 0x24);
  EXPECT_EQ(read(), "\xc3\xa9");
  text(0xa000, std::string{"\x36\x04\x00\xdc\x41\x00", 6}, 0x28, 3);
  EXPECT_EQ(read(),
            "\xd0\xb6\xef\xbf\xbd"
            "A");
  text(0xa000, std::string{"\x00\x04\x01\x00\xff\xff\xff\xff", 8}, 0x30, 2);
  EXPECT_EQ(read(), "\xf0\x90\x90\x80\xef\xbf\xbd");
  text(0xa000, "a", 0x44);
  EXPECT_EQ(read(), std::nullopt) << "not compact";
  text(0xa000, "a", 0x6c);
  EXPECT_EQ(read(), std::nullopt) << "three bytes each";
  text(0xa000, "ab", kAscii, std::size_t{1} << 60U);
  EXPECT_EQ(read(), std::nullopt) << "longer than memory";
  const std::string longest(kMostTextBytes + 10, 'x');
  text(0xa000, longest);
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->size(), kMostTextBytes);
  EXPECT_EQ(read_text(memory_, made_layout(), RemoteAddress{0}), std::nullopt);
}

TEST(LineTableTest, KnowsEachForm) {
  // short, one line +2, no column -3, long +70, none, short
  const auto table =
      bytes({0x80 | 0, 0x11, 0x80 | (12 << 3) | 1, 1, 2, 0x80 | (13 << 3), 7, 0x80 | (14 << 3),
             0x40 | 12, 2, 0, 1, 1, 0x80 | (15 << 3) | 7, 0x80, 0x33});
  const LineTable lines{table, 10};
  EXPECT_EQ(lines.line_at(0), 10U);
  EXPECT_EQ(lines.line_at(1), 10U);
  EXPECT_EQ(lines.line_at(2), 12U);
  EXPECT_EQ(lines.line_at(5), 12U);
  EXPECT_EQ(lines.line_at(6), 9U);
  EXPECT_EQ(lines.line_at(8), 79U);
  EXPECT_EQ(lines.line_at(10), 0U);
  EXPECT_EQ(lines.line_at(26), 79U);
  EXPECT_EQ(lines.line_at(28), 0U);
  EXPECT_EQ(LineTable{}.line_at(0), 0U);
}

TEST(LineTableTest, EndsWhereItMakesNoSense) {
  const auto cut = bytes({0x80, 0, 0x80 | (13 << 3)});
  EXPECT_EQ((LineTable{cut, 1}.line_at(0)), 1U);
  EXPECT_EQ((LineTable{cut, 1}.line_at(2)), 0U);
  const auto endless = bytes({0x80 | (13 << 3), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x01});
  EXPECT_EQ((LineTable{endless, 1}.line_at(0)), 0U);
  const auto negative = bytes({0x80 | (13 << 3), 0x0b});
  EXPECT_EQ((LineTable{negative, 1}.line_at(0)), 0U);
}

TEST(LineTableTest, KnowsAllLinesOfALongFunction) {
  constexpr std::uint32_t kLines = 60'000;
  std::vector<std::byte> many;
  for (std::uint32_t i = 0; i < kLines; ++i) {
    many.push_back(std::byte{0x80 | (11 << 3)});  // one instruction, next line
    many.push_back(std::byte{0});
  }
  const LineTable lines{many, 1};
  EXPECT_EQ(lines.line_at(0), 2U);
  EXPECT_EQ(lines.line_at(2000), 1002U);
  EXPECT_EQ(lines.line_at(2 * (kLines - 1)), kLines + 1);
  EXPECT_EQ(lines.line_at(2 * kLines), 0U);
}

TEST(JoinedStacks, AreOrderedByTheirEntryFrames) {
  const auto frame = [](std::uint64_t address, std::uint64_t previous, bool outermost) {
    return RawFrame{.address = RemoteAddress{address},
                    .code = {},
                    .previous = RemoteAddress{previous},
                    .instruction = {},
                    .outermost = outermost};
  };
  // The second interpreter was entered from within the first one's inner group.
  const RawStack one{.frames = {frame(1, 2, false), frame(2, 0x7000, true), frame(3, 0x9000, true)},
                     .complete = true};
  const RawStack other{.frames = {frame(11, 0x6000, true), frame(12, 0x8000, true)},
                       .complete = true};
  std::vector<std::uint64_t> order;
  for (const auto& joint : joined({one, {}, other}).frames) {
    order.push_back(joint.address.value());
  }
  EXPECT_THAT(order, testing::ElementsAre(11, 1, 2, 12, 3));
  EXPECT_EQ(joined({one, {}}).frames.size(), 3U);
  EXPECT_TRUE(joined({}).frames.empty());
}

}  // namespace
}  // namespace pyinject::python
