// Measures how fast a program calls Python functions.
#pragma once

#include "support/interpreters.hpp"
#include "support/python_process.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pyinject::test {

// Answers each line, a number of seconds, with the number of fib(15) it computed per second of CPU
// time.
inline constexpr const char* kCallsAllTheTime = R"(
import sys
import time
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
def speed(seconds):
    begin = now = time.process_time()
    rounds = 0
    while now < begin + seconds:
        assert fib(15) == 610
        rounds += 1
        now = time.process_time()
    return rounds / (now - begin)
speed(0.05)
print('ready', flush=True)
for line in sys.stdin:
    print(speed(float(line)), flush=True)
)";

// The speed of kCallsAllTheTime, measured for SECONDS of its CPU time.
[[nodiscard]] double speed_of(PythonProcess& python, double seconds);

// How fast processes call during and after a recording, relative to the speed that each had before
// it. The medians of the processes.
struct RelativeSpeed {
  double active = 0;
  double after = 0;
};

// Records processes of PYTHON with OPTIONS of record, until the medians are AS_EXPECTED: at least
// five, at most 25. Of 200 processes that nobody recorded, beside a build, six were off by more
// than 10 %: so the median of five is in one of 10,000 measurements, that of 25 in none of 10^10. A
// test failure if a recording fails.
[[nodiscard]] RelativeSpeed relative_speed(
    const Interpreter& python, const std::vector<std::string>& options,
    const std::function<bool(const RelativeSpeed&)>& as_expected);

}  // namespace pyinject::test
