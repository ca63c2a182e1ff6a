"""A known call tree. Every leaf takes the CPU time given next to it, measured by the thread's own clock."""

import sys
import time


class Worker:
    def heavy(self, unit):
        end = time.thread_time() + 2 * unit
        while time.thread_time() < end:
            for _ in range(2000):
                pass

    def light(self, unit):
        end = time.thread_time() + unit
        while time.thread_time() < end:
            for _ in range(2000):
                pass


def outer(unit):
    def inner():
        end = time.thread_time() + unit
        while time.thread_time() < end:
            for _ in range(2000):
                pass

    inner()


# Since 3.12 the comprehension is part of the lambda itself.
sum_of_squares = lambda count: len([i * i for i in range(count)])  # noqa: E731


def produce(unit):
    for _ in range(2):
        end = time.thread_time() + unit / 2
        while time.thread_time() < end:
            for _ in range(2000):
                pass
        yield end


def drain(unit):
    for _ in produce(unit):
        pass


def by_key(unit):
    def key(value):
        end = time.thread_time() + unit / 4
        while time.thread_time() < end:
            for _ in range(2000):
                pass
        return -value

    return sorted(range(4), key=key)


def main(seconds):
    unit = seconds / 60
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        worker = Worker()
        worker.heavy(unit)
        worker.light(unit)
        outer(unit)
        sum_of_squares(100_000)
        drain(unit)
        by_key(unit)


main(float(sys.argv[1]))
