#include "bpf/greenlet_module.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"
#include "support/sanitizers.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace pyinject::bpf {
namespace {

// Until the end of its life, this process can open no more than COUNT files.
class FewDescriptors {
 public:
  explicit FewDescriptors(unsigned count) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    const rlimit few{.rlim_cur = static_cast<rlim_t>(next) + count, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(GreenletModule, HasThreadLocalsThatAreFoundAgainAfterAShortage) {
  if (test::kUndefinedBehaviorSanitizer) {
    GTEST_SKIP() << "UndefinedBehaviorSanitizer needs descriptors itself";
  }
  const auto python = test::find_interpreter({.minor = 13, .module = "greenlet"});
  if (!python) {
    GTEST_SKIP() << "no CPython 3.13 with greenlet (scripts/pythons)";
  }
  constexpr auto kProgram = "import sys, greenlet\nprint('ready', flush=True)\nsys.stdin.read()";
  const test::PythonProcess target{*python, kProgram};
  const auto number = thread_locals_of_greenlet(target.pid());
  EXPECT_GT(number, 0U);
  EXPECT_LT(number, kNoThreadLocals);
  for (unsigned count = 0; count < 3; ++count) {
    const FewDescriptors few{count};
    const auto found = thread_locals_of_greenlet(target.pid());
    EXPECT_TRUE(found == 0 || found == number) << count << ": " << found;
  }
  EXPECT_EQ(thread_locals_of_greenlet(target.pid()), number);
}

}  // namespace
}  // namespace pyinject::bpf
