"""Functions that each live for less than a millisecond, and whose number is encoded in their callers.

A line with a number on stdin is answered, after that many milliseconds of CPU time, with the median lifetime of a function in
microseconds. Function number N is `f_N`; it calls `a_D` (D: the last digit of N), which calls `b_D` (the digit before) and so on up to `d_D`,
which calls `g_N`. `f_N` and `g_N` are compiled from a file named `N`, run once and freed, so that their memory is reused for the next
ones; `a_0` to `d_9` are permanent. If a stack's number differs from its digits, one of its names is wrong.
"""

import itertools
import statistics
import sys
import time

DIGITS = "abcd"

# The digit functions as text, since each needs its own name.
CALLERS = """
def {name}_{digit}(work, rest, count):
    return rest[0](work, rest[1:], count) if rest else work(count)
"""

SHORT = """
def g_{number}(count):
    total = 0
    for i in range(count):
        total += i & 7
    return total
def f_{number}(path, count):
    return path[0](g_{number}, path[1:], count)
"""

callers = {}
for name, digit in itertools.product(DIGITS, range(10)):
    exec(CALLERS.format(name=name, digit=digit), callers)


def path_of(number):
    return [callers[f"{name}_{number // 10**place % 10}"] for place, name in enumerate(DIGITS)]


def live(number, count):
    names = {}
    exec(compile(SHORT.format(number=number), str(number), "exec"), names)
    function = names[f"f_{number}"]
    begin = time.perf_counter_ns()
    total = function(path_of(number), count)
    return total, time.perf_counter_ns() - begin


def serve():
    number = 0
    print("ready", flush=True)
    for line in sys.stdin:
        lived = []
        end = time.process_time_ns() + 1000000 * int(line)
        while time.process_time_ns() < end:
            number = (number + 1) % 10 ** len(DIGITS)
            total, span = live(number, 6400)
            assert total == 6400 // 8 * 28
            lived.append(span)
        print(round(statistics.median(lived) / 1000), flush=True)


serve()
