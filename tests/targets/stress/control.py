# The start of every torture program; its own text follows (python -c THIS+PROGRAM FOLDER). It works until it is told to
# stop, counts its rounds in memory that the test can read, checks its results, and prints a verdict at its end:
# `right ROUNDS on|off` or `wrong: ...`.
import itertools
import mmap
import os
import sys
import threading
import time
import traceback

FOLDER = sys.argv[1]
# FOLDER/page is shared with the test: word 0 is the command to stop, every other word counts the rounds of one thread.
PAGE = memoryview(mmap.mmap((_fd := os.open(FOLDER + "/page", os.O_RDWR)), 4096)).cast("Q")
os.close(_fd)
_slots = itertools.count(1)
_wrong = []


# The C library installs the handlers of its own signals with the first thread: do that before the test's first check.
(_first := threading.Thread(target=int)).start()
_first.join()


def stopping():
    return PAGE[0] != 0


def expect(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got!r} instead of {wanted!r}")


# Records the traceback of an error in one line.
def blame():
    _wrong.append(" | ".join(traceback.format_exc().strip().splitlines()))


def repeat(work, slot, until=stopping):
    try:
        while not until():
            work()
            PAGE[slot] += 1
    except BaseException:
        blame()


def start(work, daemon=False, until=stopping):
    thread = threading.Thread(target=repeat, args=(work, next(_slots), until), daemon=daemon)
    thread.start()
    return thread


# Removes the map of an exited child: pids are reused soon.
def unlink_map(pid):
    try:
        os.unlink(f"/tmp/perf-{pid}.map")
    except FileNotFoundError:
        pass


def verdict():
    if _wrong:
        print("wrong:", _wrong[0], flush=True)
    else:
        print("right", sum(PAGE[1:]), "on" if sys.is_stack_trampoline_active() else "off", flush=True)


# The main thread repeats MAIN, a new thread each of WORKERS; without MAIN it waits for those. HELPERS repeat
# until all of those have ended, since those may wait for them. BEGIN and END run first and last, in the main thread.
def torture(main=None, workers=(), helpers=(), begin=None, end=None, daemon=False):
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        if begin:
            begin()
        slot = next(_slots)
        over = threading.Event()
        helping = [start(helper, until=over.is_set) for helper in helpers]
        threads = [start(worker, daemon) for worker in workers]
        if main:
            repeat(main, slot)
        if not daemon:
            for thread in threads:
                thread.join()
        over.set()
        for thread in helping:
            thread.join()
        if end:
            end()
    except BaseException:
        blame()
    verdict()
    sys.stdin.readline()  # until the test has checked for leftovers


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls():
    expect(fib(11), 89)
