"""Threads that wait, and their stacks as sys._current_frames() shows them.

Arguments: the number of threads besides the main one, and the depth of the recursive ones. Prints `ready`, then one JSON object:
for each native thread id its functions, innermost first, each with file and line. Then waits for a line on stdin.
"""

import asyncio
import functools
import json
import os
import sys
import threading

sys.setrecursionlimit(20000)
count = int(sys.argv[1])
natives = {}
barrier = threading.Barrier(count + 1)
never = threading.Lock()
never.acquire()


def wait():
    never.acquire()


def simple():
    wait()


def recursion(depth=int(sys.argv[2])):
    if depth == 0:
        return wait()
    return recursion(depth - 1)


def inner_generator():
    yield
    yield wait()


def generator():
    for _ in inner_generator():
        yield from inner_generator()


def through_generators():
    list(generator())


async def inner_coroutine():
    wait()


async def coroutine():
    await inner_coroutine()


def through_coroutines():
    coroutine().send(None)


class Größe:
    @functools.lru_cache
    def 名前(self):
        (lambda: wait())()


def through_names():
    sorted([1], key=lambda _: Größe().名前())


def hostile():
    wait()


hostile.__code__ = hostile.__code__.replace(co_qualname="\x1b[31mred\n\tpid 1: forged\x00", co_filename="/tmp/\x9b\r.py")
shapes = [simple, recursion, through_generators, through_coroutines, through_names, hostile]


def work(shape):
    natives[threading.get_ident()] = threading.get_native_id()
    barrier.wait()
    shape()


def stack_of(frame):
    stack = []
    while frame is not None:
        stack.append([frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return stack


def all_wait():
    """The frames of all threads when each one is at its last line."""
    while True:
        frames = sys._current_frames()
        stacks = {natives[ident]: stack_of(frame) for ident, frame in frames.items() if ident in natives}
        if len(stacks) == count and all(stack[0][0] == "wait" for stack in stacks.values()):
            return stacks


def pause(stacks):
    stacks[threading.get_native_id()] = stack_of(sys._getframe(0)); print("ready", json.dumps(stacks), sep="\n", flush=True); sys.stdin.readline()


for i in range(count):
    threading.Thread(target=work, args=(shapes[i % len(shapes)],), daemon=True).start()
barrier.wait()
pause(all_wait())
os._exit(0)
