"""Threads that take two locks all the time, in the same order: they wait for each other, but never in a circle."""

import threading

outer, inner = threading.RLock(), threading.Lock()


def work():
    while True:
        with outer:
            with inner:
                pass
        with inner:
            pass


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
work()
