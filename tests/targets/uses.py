"""Divides its time equally among byte code, five C functions of three files, the garbage collector, imports and the kernel,
and tells how much processor time each has taken. Prints "ready"; then, for each line of its input, the times in nanoseconds, and
how often it was switched, as a line of JSON."""
import gc
import hashlib
import json
import os
import re
import resource
import select
import sys
import tempfile
import time
import zlib

QUANTUM = 10_000_000  # nanoseconds
PATTERN = re.compile("(?:a|a|a)+b")
TEXT = "a" * 10
NUMBERS = [(i * 7919) % 10007 for i in range(3000)]
DATA = bytes(range(256)) * 200
HEAP = [[i, {i: [i]}] for i in range(20_000)]
BUFFER = bytearray(1 << 20)
ZERO = open("/dev/zero", "rb", buffering=0)


class Point:
    def __init__(self):
        self.value = 0
        self.table = {}


POINT = Point()


def do_byte_code():
    point = POINT
    for i in range(2000):
        point.value = (point.value * 3 + i) % 1_000_003
        point.table[i & 63] = point.value * 0.5
        (i, point.value)


def do_match():
    PATTERN.match(TEXT)


def do_sorted():
    sorted(NUMBERS)


def do_sum():
    sum(NUMBERS)


def do_compress():
    zlib.compress(DATA)


def do_digest():
    hashlib.sha256(DATA)


def do_collect():
    gc.collect()


def do_import():
    del sys.modules["imported"]
    import imported


def do_read():
    ZERO.readinto(BUFFER)


DO = [do_byte_code, do_match, do_sorted, do_sum, do_compress, do_digest, do_collect, do_import, do_read]
TIMES = dict.fromkeys((do.__name__ for do in DO), 0)


def spend(do, times):
    begin = now = time.thread_time_ns()
    while now - begin < QUANTUM:
        for _ in range(times):
            do()
        now = time.thread_time_ns()
    TIMES[do.__name__] += now - begin


# How often to call DO before the clock is read, which is a system call, so that this takes no time that counts.
def batch_of(do):
    do()
    begin = time.thread_time_ns()
    do()
    return max(1, 1_000_000 // max(1, time.thread_time_ns() - begin))


def told():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {**TIMES, "switches": usage.ru_nvcsw + usage.ru_nivcsw}


def main():
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as directory:
        sys.path.insert(0, directory)
        with open(os.path.join(directory, "imported.py"), "w") as module:
            module.writelines(f"def f{i}(a, b):\n    return [a + {i} for a in b if a * b > {i}]\n" for i in range(150))
        import imported
        gc.disable()  # only do_collect() collects
        batches = [(do, batch_of(do)) for do in DO]
        print("ready", flush=True)
        while True:
            for do, times in batches:
                spend(do, times)
            if select.select([sys.stdin], [], [], 0)[0]:
                if not sys.stdin.readline():
                    return
                print(json.dumps(told()), flush=True)


main()
