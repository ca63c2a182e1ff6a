// Coordinates tests that record function calls in parallel.
#pragma once

#include "pyinject/base/unique_fd.hpp"
#include "support/paths.hpp"

#include <gtest/gtest.h>

#include <string>

#include <fcntl.h>
#include <sys/file.h>

namespace pyinject::test {

// Every recording of calls removes the leftovers of killed tools from tracefs: a test that checks
// for leftovers must run alone. All tests that record calls hold one of these.
class TracefsUse {
 public:
  TracefsUse() { take(LOCK_SH); }
  // Waits for the others and blocks new ones, which could otherwise make it wait forever.
  void be_alone() {
    lock(used_, LOCK_UN);
    take(LOCK_EX);
  }

 private:
  static base::UniqueFd file(const std::string& path) {
    return base::UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  }
  static void lock(const base::UniqueFd& file, int kind) {
    EXPECT_EQ(::flock(file.get(), kind), 0);
  }
  void take(int kind) {
    lock(door_, kind);
    lock(used_, kind);
    lock(door_, LOCK_UN);
  }

  base::UniqueFd used_ = file("/proc/self/exe");
  base::UniqueFd door_ = file(tool());
};

}  // namespace pyinject::test
