"""A master that keeps replacing its workers until its stdin is closed: short_workers.py COUNT SECONDS

COUNT workers at a time; each works for a different share of SECONDS of CPU time, then exits.
A line on stdin is answered when 5 * COUNT more have started.
"""

import os
import select
import sys
import time


def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(300))


def serve(count, seconds):
    living = set()
    born = 0
    due = 3 * count
    while True:
        if select.select([0], [], [], 0)[0]:
            if not os.read(0, 1):
                break
            due = born + 5 * count
        while len(living) < count:
            born += 1
            child = os.fork()
            if not child:
                work(seconds * (born % 7 + 1) / 7)
                os._exit(0)
            living.add(child)
        living.discard(os.wait()[0])
        if due and born >= due:
            due = None
            print("ready", flush=True)
    while living:
        living.discard(os.wait()[0])


serve(int(sys.argv[1]), float(sys.argv[2]))
