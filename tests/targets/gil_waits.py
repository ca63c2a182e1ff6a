"""A thread that waits for the GIL while another one has it, and knows how long.

A line with a number N on stdin is answered after N rounds with three numbers, nanoseconds in these rounds: that the main thread slept
and then waited for the GIL, which the other thread had meanwhile; that it meant to sleep of these; and that it waited for a lock.
"""

import sys
import threading
import time

SLEPT = 0.005
HELD = 0.04  # of processor time: longer on a busy machine
sys.setswitchinterval(100)  # nobody is asked to give it away

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
        begin.release()  # who waits for it has no GIL yet
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
