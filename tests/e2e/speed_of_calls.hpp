// Measures how fast a program calls Python functions.
#pragma once

#include "support/python_process.hpp"

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

[[nodiscard]] double median(std::vector<double> values);

// The speed of kCallsAllTheTime, measured for SECONDS of its CPU time.
[[nodiscard]] double speed_of(PythonProcess& python, double seconds);

// The same processor for all: one may be much faster than another for seconds.
void keep_on_one_processor(const PythonProcess& python);

}  // namespace pyinject::test
