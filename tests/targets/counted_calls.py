"""Calls functions as often as it is told, and says so. Lines on stdin: WHAT NUMBER."""

import os
import sys
import threading


def leaf(number):
    return number


def leaves(number):
    for i in range(number):
        leaf(i)


def down(depth):
    return down(depth - 1) if depth else 0


def produce(number):
    for i in range(number):
        yield i


def consume(number):
    for _ in produce(number):
        pass


def fail():
    raise ValueError("as it should")


def fails(number):
    for _ in range(number):
        try:
            fail()
        except ValueError:
            pass


class First:
    def same_name(self):
        return self


class Second:
    def same_name(self):
        first = First()
        return first.same_name()


def methods(number):
    for _ in range(number):
        Second().same_name()


def threads(number):
    for thread in [threading.Thread(target=leaves, args=(number,)) for _ in range(4)]:
        thread.start()
        thread.join()


def fork(number):
    child = os.fork()
    if child == 0:
        leaves(number)
        os._exit(0)
    os.waitpid(child, 0)


ALL = {
    "leaves": leaves,
    "down": down,
    "consume": consume,
    "fails": fails,
    "methods": methods,
    "threads": threads,
    "fork": fork,
}

print("ready", flush=True)
for line in sys.stdin:
    what, number = line.split()
    ALL[what](int(number))
    print("done", flush=True)
