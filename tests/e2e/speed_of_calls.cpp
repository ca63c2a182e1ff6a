#include "e2e/speed_of_calls.hpp"

#include "support/patience.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include <sched.h>

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

void keep_on_one_processor(const PythonProcess& python) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::size_t first = 0;
  while (!CPU_ISSET(first, &allowed)) {
    ++first;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(python.pid().value(), sizeof one, &one), 0);
}

}  // namespace pyinject::test
