#include "support/covering.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <regex>
#include <set>
#include <utility>

namespace pyinject::test {
namespace {

// FNV-1a: the same on every machine, unlike std::hash.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

// SplitMix64.
std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

// One of COUNT: COUNT consecutive seeds, from a multiple of COUNT on, return each once, in an order
// that depends on KEY and on which of these blocks it is.
std::size_t pick(std::string_view key, std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t state = hash_of(key) ^ (seed / count * 0x9e3779b97f4a7c15U);
  for (std::size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[next_random(state) % i]);
  }
  return order[seed % count];
}

std::map<std::string, std::size_t, std::less<>>& covers() {
  static std::map<std::string, std::size_t, std::less<>> all;
  return all;
}

// How many tests of a suite a run covers, if not all.
std::map<std::string, std::size_t, std::less<>>& test_covers() {
  static std::map<std::string, std::size_t, std::less<>> all;
  return all;
}

using Rows = std::vector<std::string>;

Rows chosen(const std::string& key, const Rows& rows, std::string_view suite, std::uint64_t seed) {
  const auto wanted = cover_of(suite);
  Rows result;
  if (wanted == kEveryVersion) {
    std::map<std::string, Rows> by_version;
    for (const auto& row : rows) {
      by_version[axes_of(suite, row).version].push_back(row);
    }
    for (const auto& [version, all] : by_version) {
      result.push_back(all[pick(key + version, all.size(), seed)]);
    }
    return result;
  }
  if (wanted >= rows.size()) {
    return rows;
  }
  for (std::size_t i = 0; i < wanted; ++i) {
    result.push_back(rows[pick(key, rows.size(), seed * wanted + i)]);
  }
  return result;
}

// The names of the tests that are covered of each suite that does not cover all.
std::map<std::string, std::set<std::string, std::less<>>, std::less<>> chosen_tests(
    const std::vector<ListedTest>& all, std::uint64_t seed) {
  std::map<std::string, Rows> names;
  for (const auto& one : all) {
    if (covers_some_tests_of(one.base_suite())) {
      auto& known = names[std::string{one.base_suite()}];
      if (std::ranges::find(known, one.base_test()) == known.end()) {
        known.emplace_back(one.base_test());
      }
    }
  }
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> result;
  for (const auto& [suite, tests] : names) {
    const auto wanted = std::min(test_covers().find(suite)->second, tests.size());
    for (std::size_t i = 0; i < wanted; ++i) {
      result[suite].insert(tests[pick(suite + " tests", tests.size(), seed * wanted + i)]);
    }
  }
  return result;
}

}  // namespace

std::string_view ListedTest::base_suite() const {
  const std::string_view text{suite};
  return text.substr(text.find('/') + 1);  // npos + 1 is 0
}

std::string_view ListedTest::base_test() const {
  return std::string_view{test}.substr(0, test.find('/'));
}

std::string_view ListedTest::row() const {
  const auto at = test.find('/');
  return at == std::string::npos ? std::string_view{} : std::string_view{test}.substr(at + 1);
}

Axes axes_of(std::string_view suite, std::string_view row) {
  static const std::regex version{"(?:^|_)(?:py)?(3_1[0-9]t?)(?:_|$)"};
  static const std::regex minor{"^1[0-9]$"};
  static const std::regex way{"_(path|pyenv|built|given|[a-z]+_(?:loader|chroot))(?:_|$)"};
  static const std::regex perf{"(?:^|_)(perf(?:6_[0-9]+|[0-9]+)?)(?:_|$)"};
  static const std::regex engine{"(?:^|_)(bpf|trampoline)(?:_|$)"};
  const std::string text{row};
  const auto find = [&](const std::regex& by) {
    std::smatch found;
    return std::regex_search(text, found, by) ? found[1].str() : std::string{};
  };
  Axes axes{.version = find(version), .way = find(way), .perf = find(perf), .engine = find(engine)};
  if (axes.version.empty() && std::regex_match(text, minor)) {
    axes.version = "3_" + text;
  }
  if (axes.engine.empty()) {
    axes.engine = suite.starts_with("Bpf") ? "bpf" : axes.perf.empty() ? "" : "trampoline";
  }
  return axes;
}

bool declare_cover(std::string_view suite, std::size_t rows) {
  return covers().emplace(suite, rows).second;
}

std::size_t cover_of(std::string_view suite) {
  const auto found = covers().find(suite);
  return found == covers().end() ? 1 : found->second;
}

bool declare_tests(std::string_view suite, std::size_t tests) {
  return test_covers().emplace(suite, tests).second;
}

bool covers_some_tests_of(std::string_view suite) { return test_covers().contains(suite); }

std::vector<ListedTest> covering(const std::vector<ListedTest>& all, RowChoice choice,
                                 std::uint64_t seed) {
  // A suite may have several instances, whose rows are alike.
  const auto key_of = [&](const ListedTest& one) {
    std::string key{one.base_suite()};
    return choice == RowChoice::kPerSuite ? key : key.append(".").append(one.base_test());
  };
  std::map<std::string, Rows> rows;
  for (const auto& one : all) {
    auto& known = rows[key_of(one)];
    if (std::ranges::find(known, one.row()) == known.end()) {
      known.emplace_back(one.row());
    }
  }
  const auto some = choice == RowChoice::kPerSuite ? chosen_tests(all, seed)
                                                   : decltype(chosen_tests(all, seed)){};
  std::map<std::string, std::set<std::string, std::less<>>> wanted;
  std::vector<ListedTest> result;
  for (const auto& one : all) {
    const auto key = key_of(one);
    const auto [found, first] = wanted.try_emplace(key);
    if (first) {
      const auto picked = chosen(key, rows[key], one.base_suite(), seed);
      found->second.insert(picked.begin(), picked.end());
    }
    const auto tests = some.find(one.base_suite());
    if (found->second.contains(one.row()) &&
        (tests == some.end() || tests->second.contains(one.base_test()))) {
      result.push_back(one);
    }
  }
  return result;
}

std::vector<ListedTest> tests_of_this_program() {
  std::vector<ListedTest> all;
  const auto& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const auto& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      ListedTest one{.suite = suite.name(), .test = suite.GetTestInfo(j)->name()};
      if (one.suite.find("DISABLED_") == std::string::npos &&
          one.test.find("DISABLED_") == std::string::npos) {
        all.push_back(std::move(one));
      }
    }
  }
  return all;
}

}  // namespace pyinject::test
