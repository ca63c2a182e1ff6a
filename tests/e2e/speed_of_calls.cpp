#include "e2e/speed_of_calls.hpp"

#include "support/patience.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

namespace pyinject::test {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double speed_of(PythonProcess& python, double seconds) {
  python.send_line(std::to_string(seconds));
  return std::stod(python.read_line(kPatience));
}

}  // namespace pyinject::test
