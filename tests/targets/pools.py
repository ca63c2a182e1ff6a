# A multiprocessing pool whose workers exit after one task each, so that most are started while it runs.
#
#   pools.py fork|spawn|forkserver TASKS
#
# Prints `ready`, works on request, and prints the pids of the workers, separated by blanks.
import multiprocessing
import os
import sys
import time


def work(_):
    # On a busy machine, the worker may already be working before it is detected.
    enough = time.process_time() + 5
    while not sys.is_stack_trampoline_active() and time.process_time() < enough:
        sum(range(300))
    end = time.process_time() + 0.15
    while time.process_time() < end:
        sum(range(300))
    return os.getpid()


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    with multiprocessing.get_context(sys.argv[1]).Pool(2, maxtasksperchild=1) as pool:
        print(*pool.map(work, range(int(sys.argv[2])), chunksize=1), flush=True)
    sys.stdin.readline()
