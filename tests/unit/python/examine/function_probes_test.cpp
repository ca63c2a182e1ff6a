#include "python/examine/function_probes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pyinject::python {
namespace {

using base::ElfAddress;
using testing::HasSubstr;

constexpr const char* kArguments = "8@%rbx 8@%r12 -4@%eax";

elf::UsdtProbe probe(const std::string& name, std::uint64_t location, std::uint64_t semaphore,
                     const std::string& arguments = kArguments) {
  return {.provider = "python",
          .name = name,
          .location = ElfAddress{location},
          .semaphore = ElfAddress{semaphore},
          .arguments = arguments};
}

const std::vector<elf::Segment>& segments() {
  static const std::vector<elf::Segment> all{
      {.type = 1, .address = ElfAddress{0x10000}, .offset = 0x1000, .file_size = 0x1000},
      {.type = 1, .address = ElfAddress{0x20000}, .offset = 0x2000, .file_size = 0x1000}};
  return all;
}

auto choose(const std::vector<elf::UsdtProbe>& probes) {
  return choose_function_probes(probes, segments());
}

Refusal refusal_of(const std::vector<elf::UsdtProbe>& probes) {
  const auto chosen = choose(probes);
  const auto* const refusal = std::get_if<Refusal>(&chosen);
  EXPECT_NE(refusal, nullptr);
  return refusal == nullptr ? Refusal{} : *refusal;
}

TEST(FunctionProbes, BecomeWhatTheKernelTakes) {
  const auto chosen =
      choose({probe("gc__start", 0x10008, 0), probe("function__entry", 0x10010, 0x20002),
              probe("function__return", 0x10020, 0),
              probe("function__return", 0x10030, 0, "8@-8(%rbp) 8@(%rax) 4@%r8d"),
              probe("function__return", 0x10020, 0)});
  const auto* const probes = std::get_if<std::vector<FunctionProbe>>(&chosen);
  ASSERT_NE(probes, nullptr);
  ASSERT_EQ(probes->size(), 3U) << "each location once";
  EXPECT_TRUE((*probes)[0].entry);
  EXPECT_EQ((*probes)[0].offset, 0x1010U);
  EXPECT_EQ((*probes)[0].counter_offset, 0x2002U);
  EXPECT_EQ((*probes)[0].arguments, "file=+0(%bx):ustring func=+0(%r12):ustring line=%ax:s32");
  EXPECT_FALSE((*probes)[1].entry);
  EXPECT_EQ((*probes)[1].counter_offset, 0U);
  EXPECT_EQ((*probes)[2].arguments,
            "file=+0(-8(%bp)):ustring func=+0(+0(%ax)):ustring line=%r8:u32");
}

TEST(FunctionProbes, AreMissingWithAReason) {
  for (const auto& probes : {std::vector<elf::UsdtProbe>{},
                             {probe("gc__start", 0x10010, 0)},
                             {probe("function__entry", 0x10010, 0)},
                             {probe("function__return", 0x10010, 0)}}) {
    const auto refusal = refusal_of(probes);
    EXPECT_EQ(refusal.reason, Reason::kNoFunctionProbes);
    EXPECT_THAT(refusal.found, HasSubstr("no probes at function calls"));
    EXPECT_THAT(refusal.remedy, HasSubstr("record without --functions"));
  }
  auto other = probe("function__entry", 0x10010, 0);
  other.provider = "ruby";
  EXPECT_THAT(refusal_of({other, probe("function__return", 0x10010, 0)}).found,
              HasSubstr("no probes"));
}

TEST(FunctionProbes, ReportThoseThatMakeNoSense) {
  const auto refused_with = [](const elf::UsdtProbe& entry) {
    return refusal_of({entry, probe("function__return", 0x10020, 0)}).found;
  };
  EXPECT_THAT(refused_with(probe("function__entry", 0x10010, 0, "8@%rbx 8@$5 -4@%eax")),
              HasSubstr("arguments of its probe function__entry: '8@%rbx 8@$5 -4@%eax'"));
  EXPECT_THAT(refused_with(probe("function__entry", 0x10010, 0, "8@%rbx 8@%r12")),
              HasSubstr("cannot fetch"));
  EXPECT_THAT(refused_with(probe("function__entry", 0x10010, 0, "4@%ebx 8@%r12 4@%eax")),
              HasSubstr("cannot fetch"));
  EXPECT_THAT(refused_with(probe("function__entry", 0x10010, 0, "\x1b[31m")),
              HasSubstr("\\x1b[31m"));
  EXPECT_THAT(refused_with(probe("function__entry", 0x30010, 0)), HasSubstr("is not in its file"));
  EXPECT_THAT(refused_with(probe("function__entry", 0x10010, 0x20fff)),
              HasSubstr("is not in its file"));
}

TEST(FunctionProbes, AreNotManyThousand) {
  std::vector<elf::UsdtProbe> probes{probe("function__return", 0x10000, 0)};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    probes.push_back(probe("function__entry", 0x10010 + i, 0));
  }
  EXPECT_THAT(refusal_of(probes).found, HasSubstr("claims to have 1001"));
}

}  // namespace
}  // namespace pyinject::python
