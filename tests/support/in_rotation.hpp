// Cases in rotation, for tests whose rows times versions would take too long.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

namespace pyinject::test {

// COUNT of ALL for the row with the number ROW, so that the rows together have all of them. All of
// them for each row, if PYINJECT_TEST_ALL is in the environment. COUNT: not 0.
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
