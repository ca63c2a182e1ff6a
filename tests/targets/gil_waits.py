"""A thread that waits for the GIL while another thread holds it, and measures how long.

A line with a number N on stdin is answered after N rounds with three times of the main thread in nanoseconds: sleeping and then
waiting for the GIL, which the other thread takes in the meantime; the requested sleep, which is part of that; and waiting for a lock.
"""

import sys
import threading
import time

SLEPT = 0.005
HELD = 0.04  # of CPU time: longer on a busy machine
sys.setswitchinterval(100)  # no thread is asked to release it

begin = threading.Semaphore(0)
end = threading.Semaphore(0)


def holds_the_gil():
    until = time.thread_time() + HELD
    while time.thread_time() < until:
        for _ in range(1000):
            pass


def hold():
    while True:
        begin.acquire()
        holds_the_gil()
        end.release()


def waits_for_the_gil():
    time.sleep(SLEPT)


def waits_for_a_lock():
    begin.release()
    end.acquire()


def work(rounds):
    of_gil = of_lock = 0
    for _ in range(rounds):
        begin.release()  # the thread that this wakes up has no GIL yet
        first = time.monotonic_ns()
        waits_for_the_gil()
        second = time.monotonic_ns()
        end.acquire()
        third = time.monotonic_ns()
        waits_for_a_lock()
        of_gil += second - first
        of_lock += time.monotonic_ns() - third
    return of_gil, round(rounds * SLEPT * 1e9), of_lock


threading.Thread(target=hold, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    print(*work(int(line)), flush=True)
