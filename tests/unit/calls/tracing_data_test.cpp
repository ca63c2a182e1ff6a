#include "calls/tracing_data.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace pyinject::calls {
namespace {

template <typename Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string file(const std::string& text) {
  return bytes_of(static_cast<std::uint64_t>(text.size())) + text;
}

std::string named(const std::string& name) { return name + '\0'; }

std::string beginning(char order = 0) {
  return "\x17\x08\x44tracing" + named("0.6") + order + '\x08' + bytes_of(4096U) +
         named("header_page") + file("page") + named("header_event") + file("event");
}

std::string whole() {
  return beginning() + bytes_of(1U) + file("name: function") + bytes_of(2U) + named("sched") +
         bytes_of(2U) + file("name: one") + file("name: two") + named("mine") + bytes_of(1U) +
         file("name: three") + "kernel symbols";
}

std::vector<TracepointFormat> parse(const std::string& text) {
  return parse_tracing_data(std::as_bytes(std::span{text}));
}

TEST(TracingData, HasTheFormatsOfAllSystems) {
  const auto formats = parse(whole());
  ASSERT_EQ(formats.size(), 3U);
  EXPECT_EQ(formats[0].system, "sched");
  EXPECT_EQ(formats[0].text, "name: one");
  EXPECT_EQ(formats[1].text, "name: two");
  EXPECT_EQ(formats[2].system, "mine");
  EXPECT_EQ(formats[2].text, "name: three");
}

TEST(TracingData, IsReadAsFarAsItGoes) {
  const auto text = whole();
  std::size_t before = 0;
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const auto formats = parse(text.substr(0, size));
    EXPECT_GE(formats.size(), before);
    before = formats.size();
  }
  EXPECT_EQ(before, 3U);
}

TEST(TracingData, RejectsOtherKinds) {
  EXPECT_TRUE(parse(beginning(1) + whole().substr(beginning().size())).empty())
      << "wrong byte order";
  EXPECT_TRUE(parse("tracing").empty());
  const auto endless = beginning() + bytes_of(0U) + bytes_of(~0U) + named("a") + bytes_of(~0U) +
                       bytes_of(~std::uint64_t{0});
  EXPECT_TRUE(parse(endless).empty());
}

TEST(TracingData, SkipsHugeFormats) {
  const std::string fields = "name: entry_0_0\nID: 7\nformat:\n\tfield:int line;";
  const auto plain = fields + "\nprint fmt: \"\"\n";
  EXPECT_EQ(without_expressions(fields + "\nprint fmt: \"%d\", REC->line\n"), plain);
  EXPECT_EQ(without_expressions(fields + "\nprint fmt: \"\", " + std::string(1'000'000, '(')),
            plain);
  EXPECT_EQ(without_expressions(fields), plain);
  EXPECT_EQ(without_expressions(fields + "\nprint fmt : \"\", " + std::string(10'000, '(')),
            std::nullopt);
}

}  // namespace
}  // namespace pyinject::calls
