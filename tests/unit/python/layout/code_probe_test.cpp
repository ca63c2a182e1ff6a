#include "python/layout/code_probe.hpp"

#include <gtest/gtest.h>

namespace pyinject::python {
namespace {

using base::RemoteAddress;

std::vector<std::byte> code(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

std::optional<std::uint64_t> no_slot(RemoteAddress /*unused*/) { return std::nullopt; }

TEST(FirstFieldLoaded, FindsTheDisplacement) {
  // endbr64; mov 0x2118(%rdi),%rax; test %rax,%rax; ret
  const auto bytes =
      code({0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x87, 0x18, 0x21, 0, 0, 0x48, 0x85, 0xc0, 0xc3});
  EXPECT_EQ(first_field_loaded(bytes, RemoteAddress{0x1000}), 0x2118U);
}

TEST(FirstElementCompared, FindsTheDisplacement) {
  // cmp $7,%edi; movslq %edi,%rcx; cmpq $0,0x2a80(%rax,%rcx,8); ret
  const auto bytes =
      code({0x83, 0xff, 0x07, 0x48, 0x63, 0xcf, 0x48, 0x83, 0xbc, 0xc8, 0x80, 0x2a, 0, 0, 0, 0xc3});
  EXPECT_EQ(first_element_compared(bytes, RemoteAddress{0x1000}), 0x2a80U);
}

TEST(FirstElementCompared, WantsAnArrayOfPointers) {
  // cmpl $0,0x10(%rax,%rcx,4); cmpq $0,0x10(%rax)
  EXPECT_EQ(first_element_compared(code({0x83, 0x7c, 0x88, 0x10, 0, 0x48, 0x83, 0x78, 0x10, 0}),
                                   RemoteAddress{0x1000}),
            std::nullopt);
  EXPECT_EQ(first_element_compared({}, RemoteAddress{0x1000}), std::nullopt);
}

TEST(FirstFieldLoaded, StopsAtTheEndOfTheFunction) {
  // xor %eax,%eax; ret; mov 0x10(%rdi),%rax
  EXPECT_EQ(
      first_field_loaded(code({0x31, 0xc0, 0xc3, 0x48, 0x8b, 0x47, 0x10}), RemoteAddress{0x1000}),
      std::nullopt);
  EXPECT_EQ(first_field_loaded({}, RemoteAddress{0x1000}), std::nullopt);
  EXPECT_EQ(first_field_loaded(code({0x06, 0x07}), RemoteAddress{0x1000}), std::nullopt)
      << "no instructions";
}

TEST(TakesAddress, AsAConstant) {
  // mov $0xa3fe50,%ebx
  const auto bytes = code({0xbb, 0x50, 0xfe, 0xa3, 0x00});
  EXPECT_TRUE(
      takes_address(bytes, RemoteAddress{0x681695}, RemoteAddress{0xa3f400}, 0xa50, no_slot));
  EXPECT_FALSE(
      takes_address(bytes, RemoteAddress{0x681695}, RemoteAddress{0xa3f400}, 0xa48, no_slot));
}

TEST(TakesAddress, RelativeToTheInstruction) {
  // lea 0x100(%rip),%rbx at 0x1000, seven bytes long
  const auto bytes = code({0x48, 0x8d, 0x1d, 0x00, 0x01, 0, 0});
  EXPECT_TRUE(takes_address(bytes, RemoteAddress{0x1000}, RemoteAddress{0x1000}, 0x107, no_slot));
}

TEST(TakesAddress, ThroughASlotOfTheGlobalOffsetTable) {
  // mov 0x2845ba(%rip),%rax; lea 0xa50(%rax),%rbx
  const auto bytes =
      code({0x48, 0x8b, 0x05, 0xba, 0x45, 0x28, 0, 0x48, 0x8d, 0x98, 0x50, 0x0a, 0, 0});
  const RemoteAddress runtime{0x7f0000529000};
  const auto slot = [&](RemoteAddress at) -> std::optional<std::uint64_t> {
    return at == RemoteAddress{0x2666ef + 7 + 0x2845ba} ? std::optional{runtime.value()}
                                                        : std::nullopt;
  };
  EXPECT_TRUE(takes_address(bytes, RemoteAddress{0x2666ef}, runtime, 0xa50, slot));
  EXPECT_FALSE(takes_address(bytes, RemoteAddress{0x2666ef}, runtime, 0xa58, slot));
  EXPECT_FALSE(takes_address(bytes, RemoteAddress{0x2666ef}, runtime, 0xa50, no_slot))
      << "the register holds another address";
}

// Linkers relax such a load to this if the address is in the same file.
TEST(TakesAddress, WhereTheLoadWasRelaxed) {
  // mov $0x9b46c0,%rax; lea 0xa50(%rax),%rbx
  const auto fixed =
      code({0x48, 0xc7, 0xc0, 0xc0, 0x46, 0x9b, 0, 0x48, 0x8d, 0x98, 0x50, 0x0a, 0, 0});
  EXPECT_TRUE(
      takes_address(fixed, RemoteAddress{0x52da3f}, RemoteAddress{0x9b46c0}, 0xa50, no_slot));
  EXPECT_FALSE(
      takes_address(fixed, RemoteAddress{0x52da3f}, RemoteAddress{0x9b46c0}, 0xa58, no_slot));
  EXPECT_FALSE(
      takes_address(fixed, RemoteAddress{0x52da3f}, RemoteAddress{0x9b46c8}, 0xa50, no_slot));
  // lea 0x2000(%rip),%rax at 0x1000, seven bytes long; lea 0xa50(%rax),%rbx
  const auto relative =
      code({0x48, 0x8d, 0x05, 0x00, 0x20, 0, 0, 0x48, 0x8d, 0x98, 0x50, 0x0a, 0, 0});
  EXPECT_TRUE(
      takes_address(relative, RemoteAddress{0x1000}, RemoteAddress{0x3007}, 0xa50, no_slot));
  EXPECT_FALSE(
      takes_address(relative, RemoteAddress{0x1000}, RemoteAddress{0x3000}, 0xa50, no_slot));
}

// clang's form (3.14.7, clang 19).
TEST(TakesAddress, AsASumOfTheOffsetAndASlot) {
  // mov $0xb20,%ebx; add 0x2a2f19(%rip),%rbx at 0x249fab
  const auto bytes = code({0xbb, 0x20, 0x0b, 0, 0, 0x48, 0x03, 0x1d, 0x19, 0x2f, 0x2a, 0x00});
  const RemoteAddress runtime{0x52ab80};
  const auto slot = [&](RemoteAddress at) -> std::optional<std::uint64_t> {
    return at == RemoteAddress{0x4eced0} ? std::optional{runtime.value()} : std::nullopt;
  };
  EXPECT_TRUE(takes_address(bytes, RemoteAddress{0x249fab}, runtime, 0xb20, slot));
  EXPECT_FALSE(takes_address(bytes, RemoteAddress{0x249fab}, runtime, 0xb18, slot));
  EXPECT_FALSE(takes_address(bytes, RemoteAddress{0x249fab}, runtime, 0xb20, no_slot));
}

TEST(TakesAddress, AsASumInOneRegister) {
  // lea 0x2000(%rip),%rax at 0x1000, seven bytes long; mov %rax,%rdx; add $0xa50,%rdx
  const auto bytes = code(
      {0x48, 0x8d, 0x05, 0x00, 0x20, 0, 0, 0x48, 0x89, 0xc2, 0x48, 0x81, 0xc2, 0x50, 0x0a, 0, 0});
  EXPECT_TRUE(takes_address(bytes, RemoteAddress{0x1000}, RemoteAddress{0x3007}, 0xa50, no_slot));
  EXPECT_FALSE(takes_address(bytes, RemoteAddress{0x1000}, RemoteAddress{0x3007}, 0xa58, no_slot));
}

TEST(TakesAddress, NotOfARegisterThatHasChanged) {
  const RemoteAddress at{0x1000};
  const RemoteAddress base{0x3007};
  // lea 0x2000(%rip),%rax; call; lea 0xa50(%rax),%rbx
  EXPECT_FALSE(takes_address(code({0x48, 0x8d, 0x05, 0x00, 0x20, 0, 0, 0xe8, 0, 0, 0, 0, 0x48, 0x8d,
                                   0x98, 0x50, 0x0a, 0, 0}),
                             at, base, 0xa50, no_slot));
  // lea 0x2000(%rip),%rax; xor %eax,%eax; lea 0xa50(%rax),%rbx
  EXPECT_FALSE(takes_address(
      code({0x48, 0x8d, 0x05, 0x00, 0x20, 0, 0, 0x31, 0xc0, 0x48, 0x8d, 0x98, 0x50, 0x0a, 0, 0}),
      at, base, 0xa50, no_slot));
  // lea 0x2000(%rip),%rax; lea 0xa50(%rax,%rdi,1),%rbx
  EXPECT_FALSE(takes_address(
      code({0x48, 0x8d, 0x05, 0x00, 0x20, 0, 0, 0x48, 0x8d, 0x9c, 0x38, 0x50, 0x0a, 0, 0}), at,
      base, 0xa50, no_slot));
}

TEST(FirstCallThroughTable, FindsATableByItsAddress) {
  // movzbl %dil,%eax; shr $8,%edi; call *0x2917c0(,%rax,8); add $0xe8,%rsp (CPython 3.14.7, clang
  // 19)
  const auto bytes = code({0x40, 0x0f, 0xb6, 0xc7, 0xc1, 0xef, 0x08, 0xff, 0x14, 0xc5, 0xc0,
                           0x17, 0x29, 0,    0x48, 0x81, 0xc4, 0xe8, 0,    0,    0});
  const RemoteAddress at{0x83ae73};
  const TableCall call{.table = RemoteAddress{0x2917c0}, .returns_to = RemoteAddress{0x83ae81}};
  EXPECT_EQ(first_call_through_table(bytes, at), call);
  EXPECT_EQ(uses_of_table(bytes, at, call.table), std::vector<std::size_t>{7});
  EXPECT_TRUE(uses_of_table(bytes, at, RemoteAddress{0x2917c8}).empty());
}

TEST(FirstCallThroughTable, FindsATableByAnAddressThatTheCodeComputes) {
  // 1000: nop; lea 0x2000(%rip),%r9; mov %rdi,%rsi; call *(%r9,%rax,8); ret
  const auto bytes = code(
      {0x90, 0x4c, 0x8d, 0x0d, 0x00, 0x20, 0, 0, 0x48, 0x89, 0xfe, 0x41, 0xff, 0x14, 0xc1, 0xc3});
  const RemoteAddress at{0x1000};
  const TableCall call{.table = RemoteAddress{0x3008}, .returns_to = RemoteAddress{0x100f}};
  EXPECT_EQ(first_call_through_table(bytes, at), call);
  EXPECT_EQ(uses_of_table(bytes, at, call.table), std::vector<std::size_t>{1});
}

TEST(FirstCallThroughTable, IgnoresJumpsOtherElementsAndUnknownTables) {
  const RemoteAddress at{0x1000};
  // jmp *0x2917c0(,%rax,8), as between the functions of instructions
  EXPECT_EQ(first_call_through_table(code({0xff, 0x24, 0xc5, 0xc0, 0x17, 0x29, 0}), at),
            std::nullopt);
  // call *0x2917c0(,%rax,4)
  EXPECT_EQ(first_call_through_table(code({0xff, 0x14, 0x85, 0xc0, 0x17, 0x29, 0}), at),
            std::nullopt);
  // call *(%r9,%rax,8)
  EXPECT_EQ(first_call_through_table(code({0x41, 0xff, 0x14, 0xc1}), at), std::nullopt);
  EXPECT_EQ(first_call_through_table({}, at), std::nullopt);
  EXPECT_TRUE(uses_of_table({}, at, at).empty());
}

TEST(JumpsOutOf, DirectOnesOnly) {
  // 1000: je 1005; jne 2000; call 3000; jmp *%rax; jmp 0x400; ret
  const auto bytes = code({0x74, 0x03, 0x0f, 0x85, 0xf8, 0x0f, 0,    0,    0xe8, 0xf3, 0x1f,
                           0,    0,    0xff, 0xe0, 0xe9, 0xec, 0xf3, 0xff, 0xff, 0xc3});
  EXPECT_EQ(jumps_out_of(bytes, RemoteAddress{0x1000}),
            (std::vector{RemoteAddress{0x400}, RemoteAddress{0x2000}}));
  EXPECT_TRUE(jumps_out_of({}, RemoteAddress{0x1000}).empty());
}

}  // namespace
}  // namespace pyinject::python
