"""Two threads that work in turns, with the GIL and without it: the first holds it four times as long as the second.

A line with a number N on stdin is answered after N turns of each with four numbers in nanoseconds of CPU time: the first thread's time
with the GIL and without it, then the second's.
"""

import hashlib
import sys
import threading
import time

TURN = 20_000_000
BLOCK = bytes(1 << 20)


def compute(span):
    end = time.thread_time_ns() + span
    while time.thread_time_ns() < end:
        total = 0
        for i in range(3000):
            total += i & 7


def digest(span):
    end = time.thread_time_ns() + span
    while time.thread_time_ns() < end:
        hashlib.sha256(BLOCK)


def first(spent):
    begin = time.thread_time_ns()
    compute(4 * TURN)
    middle = time.thread_time_ns()
    digest(TURN)
    spent[0] += middle - begin
    spent[1] += time.thread_time_ns() - middle


def second(spent):
    begin = time.thread_time_ns()
    compute(TURN)
    middle = time.thread_time_ns()
    digest(4 * TURN)
    spent[2] += middle - begin
    spent[3] += time.thread_time_ns() - middle


def take_turns(work, mine, others, spent):
    while True:
        mine.acquire()
        work(spent)
        others.release()


def serve():
    spent = [0, 0, 0, 0]
    turns = [threading.Semaphore(0), threading.Semaphore(0), threading.Semaphore(0)]
    for number, work in enumerate((first, second)):
        arguments = (work, turns[number], turns[number + 1], spent)
        threading.Thread(target=take_turns, args=arguments, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        spent[:] = [0, 0, 0, 0]
        for _ in range(int(line)):
            turns[0].release()
            turns[2].acquire()
        print(*spent, flush=True)


serve()
