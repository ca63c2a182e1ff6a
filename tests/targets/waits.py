"""A program that waits in three ways and measures how long in each.

A line with a number N on stdin is answered after N rounds with three times of the main thread in nanoseconds: sleeping, waiting for a
lock and waiting for a socket. Another thread, which itself waits for the time in between, wakes it up.
"""

import socket
import sys
import threading
import time

here, there = socket.socketpair()
asked = threading.Semaphore(0)
lock = threading.Semaphore(0)


def serve():
    while True:
        asked.acquire()
        time.sleep(0.02)
        lock.release()
        asked.acquire()
        time.sleep(0.01)
        there.send(b"x")


def sleeps():
    time.sleep(0.03)


def waits_for_a_lock():
    asked.release()
    lock.acquire()


def waits_for_a_socket():
    asked.release()
    here.recv(1)


def work(rounds):
    spent = [0, 0, 0]
    for _ in range(rounds):
        for number, wait in enumerate((sleeps, waits_for_a_lock, waits_for_a_socket)):
            begin = time.monotonic_ns()
            wait()
            spent[number] += time.monotonic_ns() - begin
    return spent


threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    print(*work(int(line)), flush=True)
