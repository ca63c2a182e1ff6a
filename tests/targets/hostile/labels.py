# Processes with names of their own, which live for some milliseconds: each would be a service of its own in a profile store.
import ctypes
import itertools
import os
import signal
import time

from hostile import ready, wait_forever

prctl = ctypes.CDLL(None).prctl
SET_DEATH_SIGNAL, SET_NAME = 1, 15


def live(until):
    while time.process_time() < until:
        pass


for first in range(2):
    if os.fork() == 0:
        prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        for number in itertools.count():
            child = os.fork()
            if child == 0:
                prctl(SET_NAME, f"service{first}-{number}".encode())
                live(time.process_time() + 0.005)
                os._exit(0)
            os.waitpid(child, 0)
ready()
wait_forever()
