"""A program that starts others: each line on stdin names a way to, and is answered by "done" when the other one has worked.

    fork, subprocess, spawn, forkserver    a child, the last three by exec, too
    exec                                   it execs itself
    itself                                 none: it works itself

Each works in outer > middle > leaf.
"""

import multiprocessing
import os
import subprocess
import sys

WORK = """
import time
def leaf(end):
    while time.process_time() < end:
        for _ in range(1000):
            pass
def middle(end):
    leaf(end)
def outer():
    middle(time.process_time() + 0.4)
outer()
"""


def by_fork():
    child = os.fork()
    if not child:
        exec(WORK, {})
        os._exit(0)
    os.waitpid(child, 0)


def by_multiprocessing(method):
    child = multiprocessing.get_context(method).Process(target=exec, args=(WORK, {}))
    child.start()
    child.join()


def serve():
    print("ready", flush=True)
    for line in sys.stdin:
        way = line.strip()
        if way == "fork":
            by_fork()
        elif way == "subprocess":
            subprocess.run([sys.executable, "-c", WORK], check=True)
        elif way == "itself":
            exec(WORK, {})
        elif way == "exec":
            os.execv(sys.executable, [sys.executable, "-c", WORK + "print('done', flush=True)\ninput()"])
        else:
            by_multiprocessing(way)
        print("done", flush=True)


if __name__ == "__main__":
    serve()
