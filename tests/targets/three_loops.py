"""One function with three loops, and the CPU time that each of them took.

A line with a number on stdin is answered, after that many milliseconds of CPU time, with three numbers: nanoseconds of the
thread's CPU time in the loops marked A, B and C. Nothing else takes a significant amount of time.
"""

import sys
import time


def work(milliseconds, numbers, text):
    first = second = third = 0
    clock = time.thread_time_ns
    end_of_all = clock() + 1000000 * milliseconds
    while clock() < end_of_all:
        begin = clock()
        total = 0
        for number in numbers:  # A
            total += number * 3  # A
            total &= 1023  # A
        middle = clock()
        first += middle - begin
        for letter in text:  # B
            if letter == "e":  # B
                total += 1  # B
        end = clock()
        second += end - middle
        index = 0
        while index < 90000:  # C
            index += 1  # C
            total ^= index  # C
            total -= 1  # C
        third += clock() - end
    return first, second, third


def serve():
    numbers = list(range(30000))
    text = "three loops of known time " * 600
    work(50, numbers, text)
    print("ready", flush=True)
    for line in sys.stdin:
        print(*work(int(line), numbers, text), flush=True)


serve()
