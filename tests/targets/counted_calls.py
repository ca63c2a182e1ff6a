"""Calls functions a requested number of times, then prints `done`. Lines on stdin: WHAT NUMBER."""

import os
import signal
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


def guarded():
    try:
        yield 1
        yield 2
        yield 3
    finally:
        leaf(0)


def closes(number):
    for _ in range(number):
        generator = guarded()
        next(generator)
        next(generator)
        leaves(1000)
        generator.close()


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


class Third:
    def one_line(self): return self


class Fourth:
    def one_line(self): return Third().one_line()


def one_lines(number):
    for _ in range(number):
        Fourth().one_line()


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
    "closes": closes,
    "fails": fails,
    "methods": methods,
    "one_lines": one_lines,
    "threads": threads,
    "fork": fork,
}


# Starts another thread for each signal.
def begin_thread(*_):
    threading.Thread(target=threading.Event().wait, daemon=True).start()


signal.signal(signal.SIGUSR1, begin_thread)

print("ready", flush=True)
for line in sys.stdin:
    what, number = line.split()
    ALL[what](int(number))
    print("done", flush=True)
