"""A program with two threads that uses the processor, waits, writes, and touches new memory, in functions of known names."""

import mmap
import os
import threading
import time

NULL = os.open(os.devnull, os.O_WRONLY)


def burn(count):
    return sum(i & 7 for i in range(count))


def weigh(count):
    return -burn(count)


def rank():
    return sorted(range(40), key=weigh)


def descend(depth):
    return descend(depth - 1) if depth else burn(400)


def sleep():
    time.sleep(0.002)


def write():
    for _ in range(20):
        os.write(NULL, b"x")


def touch():
    size = 32 * mmap.PAGESIZE
    with mmap.mmap(-1, size) as area:
        area[:: mmap.PAGESIZE] = bytes(32)


def work():
    for step in (rank, lambda: descend(25), sleep, write, touch):
        step()


def serve():
    while True:
        work()


threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
serve()
