#include "python/layout/stack_owners.hpp"

#include <gtest/gtest.h>

namespace pyinject::python {
namespace {

using base::RemoteAddress;
using base::Tid;

procfs::Mapping mapped(std::uint64_t begin, std::uint64_t end, const std::string& path) {
  procfs::Mapping mapping;
  mapping.begin = RemoteAddress{begin};
  mapping.end = RemoteAddress{end};
  mapping.path = path;
  return mapping;
}

TEST(StackOwnersTest, FindsTheThreadOfAStack) {
  const RuntimeLayout layout{};
  StackOwners owners{layout};
  owners.add(0x1f00, Tid{11});
  owners.add(0x2f00, Tid{12});
  owners.add(0x500, Tid{10});
  owners.set_main(Tid{10});
  const std::vector<procfs::Mapping> mappings{
      mapped(0x1000, 0x3000, ""), mapped(0x4000, 0x5000, ""), mapped(0x9000, 0xa000, "[stack]")};
  EXPECT_EQ(owners.at(RemoteAddress{0x1800}, mappings), Tid{11});
  EXPECT_EQ(owners.at(RemoteAddress{0x2800}, mappings), Tid{12}) << "two stacks in one mapping";
  EXPECT_EQ(owners.at(RemoteAddress{0x4800}, mappings), std::nullopt) << "it has exited";
  EXPECT_EQ(owners.at(RemoteAddress{0x9800}, mappings), Tid{10});
  EXPECT_EQ(owners.at(RemoteAddress{0x3800}, mappings), std::nullopt);
}

}  // namespace
}  // namespace pyinject::python
