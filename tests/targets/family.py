"""A program that starts children on request: each line on stdin starts one and is answered with its pid when it has exited.

    fork                a fork, which works in its parent's function (`inherited`) and in one that it creates (`born`)
    exec COMMAND...     a fork that execs COMMAND with a program that works in `grown_up`
"""

import os
import sys
import time

SECONDS = 0.3
GROWN_UP = """
import time
def grown_up(until):
    while time.process_time() < until:
        sum(range(300))
grown_up(time.process_time() + 1)
"""
BORN = """
def born(until):
    while time.process_time() < until:
        for _ in range(3000):
            pass
"""


def inherited(until):
    while time.process_time() < until:
        for _ in range(3000):
            pass


def grow():
    inherited(time.process_time() + SECONDS)
    names = {"time": time}
    exec(BORN, names)
    names["born"](time.process_time() + SECONDS)


def have_child(command):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        return child
    if command:
        os.execv(command[0], [*command, "-c", GROWN_UP])
    grow()
    os._exit(0)


def serve():
    print("ready", flush=True)
    for line in sys.stdin:
        print(have_child(line.split()[1:]), flush=True)


serve()
