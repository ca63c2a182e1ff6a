#include "elf/usdt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace pyinject::elf {
namespace {

using base::ElfAddress;

template <typename Number>
std::string bytes_of(Number number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string padded(std::string text) {
  text.resize((text.size() + 3) / 4 * 4, '\0');
  return text;
}

std::string note(const std::string& description, std::uint32_t type = 3,
                 const std::string& owner = std::string{"stapsdt\0", 8}) {
  return bytes_of(static_cast<std::uint32_t>(owner.size())) +
         bytes_of(static_cast<std::uint32_t>(description.size())) + bytes_of(type) + padded(owner) +
         padded(description);
}

std::string probe(std::uint64_t location, std::uint64_t base, std::uint64_t semaphore,
                  const std::string& name = "function__entry") {
  return bytes_of(location) + bytes_of(base) + bytes_of(semaphore) + std::string{"python\0", 7} +
         name + '\0' + "8@%rbx -4@%eax" + '\0';
}

std::vector<UsdtProbe> parse(const std::string& text,
                             std::optional<ElfAddress> base = ElfAddress{0x900}) {
  return parse_usdt_notes(std::as_bytes(std::span{text}), base);
}

TEST(UsdtNotes, AreRead) {
  const auto probes =
      parse(note(probe(0x1000, 0x900, 0x2000)) + note(probe(0x1010, 0x900, 0, "function__return")));
  ASSERT_EQ(probes.size(), 2U);
  EXPECT_EQ(probes[0].provider, "python");
  EXPECT_EQ(probes[0].name, "function__entry");
  EXPECT_EQ(probes[0].location, ElfAddress{0x1000});
  EXPECT_EQ(probes[0].semaphore, ElfAddress{0x2000});
  EXPECT_EQ(probes[0].arguments, "8@%rbx -4@%eax");
  EXPECT_EQ(probes[1].name, "function__return");
  EXPECT_EQ(probes[1].semaphore, ElfAddress{}) << "no semaphore";
}

TEST(UsdtNotes, AreMovedWithTheirBase) {
  const auto probes = parse(note(probe(0x1000, 0x900, 0x2000)), ElfAddress{0x10900});
  ASSERT_EQ(probes.size(), 1U);
  EXPECT_EQ(probes[0].location, ElfAddress{0x11000});
  EXPECT_EQ(probes[0].semaphore, ElfAddress{0x12000});
  const auto unmoved = parse(note(probe(0x1000, 0x800, 0)), std::nullopt);
  ASSERT_EQ(unmoved.size(), 1U);
  EXPECT_EQ(unmoved[0].location, ElfAddress{0x1000});
  EXPECT_EQ(parse(note(probe(0x1000, 0x800, 0)))[0].semaphore, ElfAddress{})
      << "no semaphore, not a relocated 0";
}

TEST(UsdtNotes, SkipOtherNotes) {
  const auto good = note(probe(1, 0x900, 0));
  EXPECT_EQ(
      parse(note("whatever", 1) + note(probe(1, 0, 0), 3, std::string{"GNU\0", 4}) + good).size(),
      1U);
  EXPECT_EQ(parse(note(std::string(23, 'x')) + note(bytes_of(1UL) + "no end") + good).size(), 1U);
}

TEST(UsdtNotes, EndWhereASizeMakesNoSense) {
  const auto good = note(probe(1, 0x900, 0));
  EXPECT_EQ(parse(good + good.substr(0, good.size() - 20)).size(), 1U);
  EXPECT_EQ(parse(good + bytes_of(~0U) + bytes_of(~0U) + bytes_of(3U) + good).size(), 1U);
  EXPECT_TRUE(parse("").empty());
  EXPECT_EQ(parse(good.substr(0, good.size() - 1)).size(), 1U) << "its padding may be missing";
}

std::string fetch(std::string_view text) {
  const auto argument = parse_usdt_argument(text);
  return argument ? argument->fetch : "refused";
}

TEST(UsdtArguments, AreRegistersOfAnySize) {
  const auto argument = parse_usdt_argument("-4@%eax");
  ASSERT_TRUE(argument);
  EXPECT_EQ(argument->bytes, 4);
  EXPECT_TRUE(argument->is_signed);
  EXPECT_EQ(argument->fetch, "%ax");
  EXPECT_FALSE(parse_usdt_argument("8@%rbx")->is_signed);
  EXPECT_EQ(fetch("8@%rbx"), "%bx");
  EXPECT_EQ(fetch("8@%rsi"), "%si");
  EXPECT_EQ(fetch("8@%rsp"), "%sp");
  EXPECT_EQ(fetch("8@%r12"), "%r12");
  EXPECT_EQ(fetch("8@%r8"), "%r8");
  EXPECT_EQ(fetch("-4@%r8d"), "%r8");
  EXPECT_EQ(fetch("2@%r15w"), "%r15");
  EXPECT_EQ(fetch("1@%r9b"), "%r9");
  EXPECT_EQ(fetch("2@%dx"), "%dx");
  EXPECT_EQ(fetch("1@%cl"), "%cx");
  EXPECT_EQ(fetch("1@%dil"), "%di");
}

TEST(UsdtArguments, AreMemoryBesideARegister) {
  EXPECT_EQ(fetch("8@-24(%rbp)"), "-24(%bp)");
  EXPECT_EQ(fetch("-4@8(%rsp)"), "+8(%sp)");
  EXPECT_EQ(fetch("8@(%r12)"), "+0(%r12)");
  EXPECT_EQ(fetch("8@+16(%rax)"), "+16(%ax)");
}

TEST(UsdtArguments, AreRefusedIfTheKernelCannotFetchThem) {
  for (const auto* const text : {"",
                                 "8",
                                 "8@",
                                 "@%rax",
                                 "3@%rax",
                                 "8@%ah",
                                 "8@%rip",
                                 "8@%xmm0",
                                 "8@%r7",
                                 "8@%r16",
                                 "8@%r08",
                                 "8@$5",
                                 "8@5",
                                 "8@name(%rip)",
                                 "8@8(%rip)",
                                 "8@(%rax,%rbx,4)",
                                 "8@-24(%rbp",
                                 "8@-24(%ebp)",
                                 "8@(%r12d)",
                                 "8@1x(%rax)",
                                 "8@%rbx ",
                                 "8@%rax):string evil=+0(%di)",
                                 "8@99999999999999999999(%rax)",
                                 "16@%rax",
                                 "8@()",
                                 "8@%",
                                 "8@%r"}) {
    EXPECT_EQ(fetch(text), "refused") << text;
  }
}

TEST(UsdtPlaces, AreInOneSegment) {
  const std::vector<Segment> segments{
      {.type = 1, .address = ElfAddress{0x1000}, .offset = 0x400, .file_size = 0x100},
      {.type = 1, .address = ElfAddress{0x3000}, .offset = 0x500, .file_size = 0x10}};
  EXPECT_EQ(file_offset(segments, ElfAddress{0x1010}, 1), 0x410U);
  EXPECT_EQ(file_offset(segments, ElfAddress{0x300e}, 2), 0x50eU);
  EXPECT_EQ(file_offset(segments, ElfAddress{0x300f}, 2), std::nullopt);
  EXPECT_EQ(file_offset(segments, ElfAddress{0xfff}, 1), std::nullopt);
  EXPECT_EQ(file_offset(segments, ElfAddress{0x2000}, 1), std::nullopt);
}

}  // namespace
}  // namespace pyinject::elf
