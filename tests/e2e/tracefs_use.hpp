// Tests that record calls of functions, side by side.
#pragma once

#include "pyinject/base/unique_fd.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>

namespace pyinject::test {

// Whoever records calls removes what killed tools have left in tracefs: a test that looks at that
// is alone. All tests that record calls have one of these.
class TracefsUse {
 public:
  TracefsUse() : file_{::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)} { lock(LOCK_SH); }
  // Waits for the others, and makes them wait.
  void be_alone() { lock(LOCK_EX); }

 private:
  void lock(int kind) { EXPECT_EQ(::flock(file_.get(), kind), 0); }

  base::UniqueFd file_;
};

}  // namespace pyinject::test
