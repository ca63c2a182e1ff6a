// The main function of all test programs.
//
//   PROGRAM [GoogleTest's options]       runs the tests, each row of each test that a filter names
//   PROGRAM --list-entries suite|row|test|rows
//                                        prints what ctest shall run, one entry per line: its name,
//                                        a filter for the program and the number of tests,
//                                        separated by tabs. An entry is a suite with all its rows,
//                                        a suite with one row, a test with one row, or a test with
//                                        the chosen rows.
//
// For entries, PYINJECT_TEST_SEED (a number) chooses the rows (covering.hpp); PYINJECT_TEST_ALL
// selects all rows. Status: 4 if every test was skipped.
#include "base/text.hpp"
#include "support/covering.hpp"
#include "support/find_perf.hpp"
#include "support/interpreters.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/resource.h>

namespace pyinject::test {
namespace {

constexpr int kAllSkipped = 4;  // SKIP_RETURN_CODE in tests/CMakeLists.txt

std::uint64_t seed() {
  const char* const text = std::getenv("PYINJECT_TEST_SEED");
  return base::parse_number<std::uint64_t>(text == nullptr ? "" : text).value_or(0);
}

struct Entry {
  std::string name;
  std::string filter;
};

Entry entry_of(const ListedTest& one, std::string_view kind) {
  if (kind == "test") {
    return {.name = one.full_name(), .filter = one.full_name()};
  }
  if (kind == "rows") {
    return {.name = fmt::format("{}.{}", one.base_suite(), one.base_test()),
            .filter = one.full_name()};
  }
  if (one.row().empty() || kind == "suite") {
    return {.name = std::string{one.base_suite()},
            .filter = fmt::format("{0}.*:*/{0}.*", one.base_suite())};
  }
  return {.name = fmt::format("{}/{}", one.base_suite(), one.row()),
          .filter = fmt::format("{}.*/{}", one.suite, one.row())};
}

// Without rows that this machine cannot run, such as those of CPython 3.12, which no suite of
// Debian has; with them, if a test has no others: it says what it lacks.
std::vector<ListedTest> runnable(const std::vector<ListedTest>& all) {
  std::set<std::string> versions;
  for (const auto& python : interpreters({.only_read = true})) {
    versions.insert(
        fmt::format("{}_{}{}", python.major, python.minor, python.free_threaded ? "t" : ""));
  }
  const auto can_run = [&](const ListedTest& one) {
    auto axes = axes_of(one.base_suite(), one.row());
    std::ranges::replace(axes.perf, '_', '.');
    return (axes.version.empty() || versions.contains(axes.version)) &&
           (axes.perf.empty() || find_perf(axes.perf));
  };
  const auto test_of = [](const ListedTest& one) {
    return fmt::format("{}.{}", one.suite, one.base_test());
  };
  std::set<std::string> some;
  for (const auto& one : all) {
    if (can_run(one)) {
      some.insert(test_of(one));
    }
  }
  std::vector<ListedTest> result;
  std::ranges::copy_if(all, std::back_inserter(result), [&](const ListedTest& one) {
    return can_run(one) || !some.contains(test_of(one));
  });
  return result;
}

int list_entries(std::string_view kind) {
  auto tests = tests_of_this_program();
  const bool every = kind == "suite" || std::getenv("PYINJECT_TEST_ALL") != nullptr;
  if (!every) {
    tests = covering(runnable(tests), kind == "row" ? RowChoice::kPerSuite : RowChoice::kPerTest,
                     seed());
  }
  std::vector<Entry> entries;
  std::map<std::string, int> counts;
  std::map<std::string, std::size_t> places;
  for (const auto& one : tests) {
    auto entry = entry_of(one, kind);
    ++counts[entry.name];
    const auto [place, first] = places.try_emplace(entry.name, entries.size());
    const bool some =
        kind == "rows" || (!every && kind == "row" && covers_some_tests_of(one.base_suite()));
    if (some) {
      entry.filter = one.full_name();
    }
    if (first) {
      entries.push_back(std::move(entry));
    } else if (some) {
      entries[place->second].filter += ":" + entry.filter;
    }
  }
  for (const auto& entry : entries) {
    fmt::print("{}\t{}\t{}\n", entry.name, entry.filter, counts[entry.name]);
  }
  return EXIT_SUCCESS;
}

double seconds_of(int who) {
  rusage used{};
  ::getrusage(who, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace
}  // namespace pyinject::test

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc == 3 && std::string_view{argv[1]} == "--list-entries") {
    return pyinject::test::list_entries(argv[2]);
  }
  (void)std::signal(SIGHUP, SIG_DFL);  // nohup(1) ignores it, and tests send it
  const int status = RUN_ALL_TESTS();
  // Unlike the time that ctest prints, this one does not depend on what else runs.
  fmt::print("processor time: {:.1f} s, and {:.1f} s of child processes\n",
             pyinject::test::seconds_of(RUSAGE_SELF), pyinject::test::seconds_of(RUSAGE_CHILDREN));
  const auto& program = *testing::UnitTest::GetInstance();
  const bool all_skipped = program.skipped_test_count() > 0 &&
                           program.skipped_test_count() == program.test_to_run_count();
  return status == 0 && all_skipped ? pyinject::test::kAllSkipped : status;
}
