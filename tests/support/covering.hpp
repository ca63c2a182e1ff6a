// Chooses the rows of parametrized tests that one run covers.
//
// INSTANTIATE_TEST_SUITE_P registers every row of a test: together they are the matrix. A run for a
// change takes one row of each test. The seed decides which one, and each row of N comes up once
// within N consecutive seeds: a run of each commit, counted by `git rev-list --count`, covers
// everything in time, and a seed repeats a run.
//
// A row's name has its axes: "perf6_12_py3_14_jit", "py3_13_trixie_chroot", "py3_12_bpf".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pyinject::test {

// A test as GoogleTest lists it: "Pythons/BpfStacks.AreValid/perf_py3_12".
struct ListedTest {
  std::string suite;  // "Pythons/BpfStacks"
  std::string test;   // "AreValid/perf_py3_12"

  [[nodiscard]] std::string full_name() const { return suite + "." + test; }
  [[nodiscard]] std::string_view base_suite() const;  // "BpfStacks"
  [[nodiscard]] std::string_view base_test() const;   // "AreValid"
  [[nodiscard]] std::string_view row() const;         // "perf_py3_12"; empty: no parameter
};

// What a row varies; empty: the row does not.
struct Axes {
  std::string version;  // "3_13", "3_13t" (free-threaded)
  std::string way;     // how the interpreter was installed and is started: "pyenv", "trixie_chroot"
  std::string perf;    // "perf", "perf6_12", "perf7"
  std::string engine;  // "bpf", "trampoline"
};

// The axes of ROW of SUITE, without its instance. The engine is in the row, or bpf for suites whose
// name begins with Bpf, or else the trampoline for rows with a perf.
[[nodiscard]] Axes axes_of(std::string_view suite, std::string_view row);

// How many rows of a test run for a change, unless one.
constexpr std::size_t kEveryRow = SIZE_MAX;          // cheap, or rather different tests
constexpr std::size_t kEveryVersion = SIZE_MAX - 1;  // one of each Python version: its subject
constexpr std::size_t kOnlyInTheMatrix = 0;

// Who chooses a row.
enum class RowChoice {
  kPerTest,   // each test by itself
  kPerSuite,  // all tests of a suite have the same row, since they share what it costs
};

// Declares how many rows of SUITE's tests run for a change. Use COVER.
bool declare_cover(std::string_view suite, std::size_t rows);
[[nodiscard]] std::size_t cover_of(std::string_view suite);

// Declares how many tests of SUITE, which are alike, run for a change: others with each seed. Use
// COVER_TESTS. Only where the suite shares a row.
bool declare_tests(std::string_view suite, std::size_t tests);
[[nodiscard]] bool covers_some_tests_of(std::string_view suite);

// The tests of ALL that a run with SEED covers, in the order of ALL.
[[nodiscard]] std::vector<ListedTest> covering(const std::vector<ListedTest>& all, RowChoice choice,
                                               std::uint64_t seed);

// The tests of the running program, in the order of their registration, without disabled ones.
[[nodiscard]] std::vector<ListedTest> tests_of_this_program();

}  // namespace pyinject::test

// Next to INSTANTIATE_TEST_SUITE_P: COVER(LayoutBytes, kEveryVersion);
#define COVER(suite, rows)          \
  static_assert(sizeof(suite) > 0); \
  [[maybe_unused]] const bool suite##Cover = ::pyinject::test::declare_cover(#suite, rows)

// COVER_TESTS(FailedRecordings, 6);
#define COVER_TESTS(suite, tests)   \
  static_assert(sizeof(suite) > 0); \
  [[maybe_unused]] const bool suite##Tests = ::pyinject::test::declare_tests(#suite, tests)
