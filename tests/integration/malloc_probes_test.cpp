// The uprobes of --what malloc on real processes.
#include "record/malloc_probes.hpp"

#include "support/fake_python.hpp"
#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <variant>

namespace pyinject::record {
namespace {

using testing::HasSubstr;

// It maps 20 copies of its C library, each of which defines malloc.
constexpr auto kCopies = R"(
import mmap, os, shutil, sys, tempfile
library = next(line.split()[-1] for line in open("/proc/self/maps") if "/libc.so" in line)
kept = []
with tempfile.TemporaryDirectory() as directory:
    for number in range(20):
        path = shutil.copy(library, f"{directory}/a{number}.so")
        with open(path, "rb") as file:
            kept.append(mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC))
print("ready", flush=True)
sys.stdin.read()
)";

// Not of chrooted interpreters: the program needs /proc.
// perf needs up to 100 ms for each event and thread: a process must not choose how many there are.
TEST(MallocProbes, AreNotMoreThanARecordingCanBear) {
  const auto pythons = test::interpreters({.root = false});
  if (pythons.empty()) {
    GTEST_SKIP() << "no interpreter (scripts/pythons)";
  }
  const test::PythonProcess python{pythons.front(), kCopies};
  test::RecordingLogger logger;
  const std::array pids{python.pid()};
  auto probed = MallocProbes::of(pids, base::Cancellation::never(), logger);
  if (const auto* const why = std::get_if<std::string>(&probed)) {
    GTEST_SKIP() << *why;
  }
  auto& probes = std::get<MallocProbes>(probed);
  EXPECT_EQ(probes.files().size(), 16U);
  EXPECT_THAT(probes.files().front(), HasSubstr("/libc.so")) << "what nearly all calls go to";
  EXPECT_THAT(logger.text(base::LogLevel::kWarning),
              HasSubstr("5 more files that define malloc are not probed"));
  probes.remove(logger);
}

TEST(MallocProbes, AreNotPlacedOnceTheUserGaveUp) {
  const test::PythonProcess python{test::interpreters({.root = false}).at(0), kCopies};
  test::RecordingLogger logger;
  base::Cancellation cancellation;
  cancellation.cancel();
  const std::array pids{python.pid()};
  EXPECT_TRUE(std::holds_alternative<std::string>(MallocProbes::of(pids, cancellation, logger)));
}

}  // namespace
}  // namespace pyinject::record
