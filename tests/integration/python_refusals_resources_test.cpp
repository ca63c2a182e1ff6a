// Processes whose limits leave no room for what CPython's trampoline code needs, and programs whose
// trampoline writes no perf map.
#include "integration/detection.hpp"
#include "support/covering.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <sys/resource.h>

namespace pyinject::test {
namespace {

using python::Reason;

class ResourceRefusals : public DetectionTest {
 protected:
  void start(const std::string& program = kIdle) { python_.emplace(GetParam(), program); }
  [[nodiscard]] base::Pid pid() const { return python_->pid(); }
  // Sets the soft limit of the process; returns the one before.
  [[nodiscard]] rlim_t limit(__rlimit_resource resource, rlim_t value) const {
    rlimit before{};
    EXPECT_EQ(::prlimit(pid().value(), resource, nullptr, &before), 0);
    const rlimit after{.rlim_cur = value, .rlim_max = before.rlim_max};
    EXPECT_EQ(::prlimit(pid().value(), resource, &after, nullptr), 0);
    return before.rlim_cur;
  }
  // Bytes of all mappings.
  [[nodiscard]] rlim_t mapped() const {
    std::ifstream file{fmt::format("/proc/{}/statm", pid().value())};
    rlim_t pages = 0;
    file >> pages;
    constexpr rlim_t kPage = 4096;
    return pages * kPage;
  }

  std::optional<PythonProcess> python_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ResourceRefusals);
COVER(ResourceRefusals, kEveryVersion);
INSTANTIATE_TEST_SUITE_P(Pythons, ResourceRefusals, testing::ValuesIn(interpreters()),
                         InterpreterName{});

TEST_P(ResourceRefusals, NameALimitOfTheAddressSpace) {
  start();
  const auto before = limit(RLIMIT_AS, mapped() + 65536);
  expect_refused_untouched(pid(), Reason::kResourceLimit, {"RLIMIT_AS", "--as=unlimited", "bpf"});
  // Far from the limit, too, where CPython would crash at it.
  constexpr rlim_t kFar = rlim_t{1} << 30U;
  (void)limit(RLIMIT_AS, mapped() + kFar);
  if (GetParam().minor == 12 || GetParam().minor >= 15) {
    expect_refused_untouched(pid(), Reason::kResourceLimit, {"crashes", "--as=unlimited"});
  } else {
    expect_ready(pid());
  }
  (void)limit(RLIMIT_AS, before);
  expect_ready(pid());
}

TEST_P(ResourceRefusals, NameALimitOfDescriptors) {
  start();
  constexpr rlim_t kFew = 5;
  const auto before = limit(RLIMIT_NOFILE, kFew);
  expect_refused_untouched(pid(), Reason::kResourceLimit, {"of 5 descriptors", "RLIMIT_NOFILE"});
  (void)limit(RLIMIT_NOFILE, before);
  expect_ready(pid());
}

TEST_P(ResourceRefusals, NameTheSignalAtALimitOfFiles) {
  constexpr rlim_t kLarge = rlim_t{64} << 20U;
  start();
  (void)limit(RLIMIT_FSIZE, kLarge);
  expect_ready(pid());  // CPython ignores the signal
  start(std::string{"import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"} + kIdle);
  (void)limit(RLIMIT_FSIZE, kLarge);
  expect_refused_untouched(pid(), Reason::kResourceLimit, {"SIGXFSZ", "--fsize=unlimited"});
}

TEST_P(ResourceRefusals, NameAProgramThatWritesAJitDump) {
  if (!since(13)) {
    GTEST_SKIP() << "-X perf_jit came with 3.13";
  }
  start(std::string{"import sys\nsys.activate_stack_trampoline('perf')\n"
                    "def f(): pass\nf()\n"} +
        kIdle);
  expect_ready(pid());  // on by itself, with a map
  auto interpreter = GetParam();
  interpreter.command.insert(interpreter.command.end(), {"-X", "perf_jit"});
  python_.emplace(interpreter, kIdle);
  expect_refused_untouched(
      pid(), Reason::kMapNotWritten,
      {fmt::format("/tmp/jit-{}.dump", pid().value()), "-X perf_jit", "--engine bpf", "-X perf"});
  std::error_code ignored;
  std::filesystem::remove(fmt::format("{}/tmp/jit-{}.dump", GetParam().root, pid().value()),
                          ignored);
}

}  // namespace
}  // namespace pyinject::test
