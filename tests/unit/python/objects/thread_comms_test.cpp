#include "python/objects/thread_comms.hpp"

#include <gtest/gtest.h>

namespace pyinject::python {
namespace {

TEST(ThreadComms, AreCutAsByTheKernel) {
  EXPECT_EQ(comm_of("reader"), "reader");
  EXPECT_EQ(comm_of("123456789012345"), "123456789012345");
  EXPECT_EQ(comm_of("1234567890123456"), "123456789012345");
  EXPECT_EQ(comm_of("12345678901234\u00e9"), "12345678901234") << "no half of a character";
  EXPECT_EQ(comm_of("\n\u00e9"), "\\x0a\u00e9");
  EXPECT_EQ(comm_of("1234567890123\n"), "1234567890123\\x");
  EXPECT_EQ(comm_of(""), "");
}

}  // namespace
}  // namespace pyinject::python
