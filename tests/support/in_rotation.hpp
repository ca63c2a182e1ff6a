// For suites in which each row on each version would take too long.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace pyinject::test {

// Returns COUNT of ALL for the row numbered ROW: consecutive rows take turns, and together use all.
// With PYINJECT_TEST_ALL in the environment, each row gets ALL. COUNT must not be 0.
template <typename T>
[[nodiscard]] std::vector<T> in_rotation(const std::vector<T>& all, std::size_t row,
                                         std::size_t count) {
  if (all.size() <= count || std::getenv("PYINJECT_TEST_ALL") != nullptr) {
    return all;
  }
  std::vector<T> chosen;
  for (std::size_t i = 0; i < count; ++i) {
    chosen.push_back(all[(row + i * all.size() / count) % all.size()]);
  }
  return chosen;
}

}  // namespace pyinject::test
