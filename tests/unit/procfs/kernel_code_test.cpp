#include "procfs/kernel_code.hpp"

#include "procfs/machine_facts.hpp"

#include <gtest/gtest.h>

namespace pyinject::procfs {
namespace {

TEST(KernelCode, IsBetweenItsSymbols) {
  const auto code = find_kernel_code(
      "0000000000000000 A fixed_percpu_data\n"
      "ffffffff81000000 T _stext\n"
      "ffffffff81000000 T _text\n"
      "ffffffff81000040 t secondary_startup_64\n"
      "ffffffff82001234 T _etext\n"
      "ffffffffc0000000 t _etext_of_nobody\t[ext4]\n");
  EXPECT_EQ(code.begin, 0xffffffff81000000U);
  EXPECT_EQ(code.end, 0xffffffff82001234U);
}

TEST(KernelCode, IsUnknownIfAddressesAreHidden) {
  EXPECT_EQ(find_kernel_code("0000000000000000 T _text\n0000000000000000 T _etext\n").begin, 0U);
  EXPECT_EQ(find_kernel_code("T\n \n\nffff").begin, 0U);
}

TEST(KernelCode, OfModulesIsListed) {
  const auto modules = parse_modules(
      "ext4 1142784 1 - Live 0xffffffffc0800000\n"
      "hidden 4096 0 - Live 0x0000000000000000\n"
      "tainted 8192 2 a,b, Live 0xffffffffc0100000 (OE)\n"
      "cut 12\n");
  ASSERT_EQ(modules.size(), 2U);
  EXPECT_EQ(modules[0].name, "ext4");
  EXPECT_EQ(modules[0].begin, 0xffffffffc0800000U);
  EXPECT_EQ(modules[0].size, 1142784U);
  EXPECT_EQ(modules[1].name, "tainted");
}

TEST(MachineFacts, AreReadFromProc) {
  const auto facts = parse_machine_facts(
      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
      "model name\t: Intel(R) Xeon(R)\nstepping\t: 8\nprocessor\t: 1\nmodel\t\t: 9\n",
      "MemTotal:       24683652 kB\nMemFree: 1 kB\n");
  EXPECT_EQ(facts.processor, "Intel(R) Xeon(R)");
  EXPECT_EQ(facts.processor_id, "GenuineIntel,6,143,8");
  EXPECT_EQ(facts.memory_kilobytes, 24683652U);
  EXPECT_EQ(parse_machine_facts("", "").memory_kilobytes, 0U);
  EXPECT_EQ(parse_machine_facts("", "").processor, "");
}

}  // namespace
}  // namespace pyinject::procfs
