"""Threads that wait for each other forever, and tasks that await others. After "ready", a JSON object: the native id of each thread.

| Threads | wait for |
|---|---|
| red, blue | the RLock of the other |
| one, two, three | the RLock of the next one |
| left, right | the Lock of the other |
| hen, egg | the end of the other |
| gétter | a queue that stays empty |
| holder | a semaphore, inside an RLock for which waiter waits |
"""

import asyncio
import json
import queue
import threading

names = ["red", "blue", "one", "two", "three", "left", "right"]
all_have_theirs = threading.Barrier(len(names))
locks = {name: threading.Lock() if name in ("left", "right") else threading.RLock() for name in names}
next_of = {"red": "blue", "blue": "red", "one": "two", "two": "three", "three": "one", "left": "right", "right": "left"}


def take_two(name):
    with locks[name]:
        all_have_theirs.wait()
        with locks[next_of[name]]:
            pass


def hold():
    with held:
        is_held.set()
        threading.Semaphore(0).acquire()


def wait():
    is_held.wait()
    with held:
        pass


def start(name, function, *arguments):
    threads[name] = threading.Thread(target=function, args=arguments, name=name, daemon=True)
    threads[name].start()


threads = {}
held = threading.RLock()
is_held = threading.Event()
for name in names:
    start(name, take_two, name)
both = threading.Barrier(2)
start("hen", lambda: (both.wait(), threads["egg"].join()))
start("egg", lambda: (both.wait(), threads["hen"].join()))
start("gétter", queue.Queue().get)
start("holder", hold)
start("waiter", wait)


async def leaf():
    await asyncio.sleep(1000)


async def middle(number):
    await asyncio.gather(asyncio.create_task(leaf(), name=f"leaf-{number}"), asyncio.create_task(leaf(), name=f"other-{number}"))


async def main():
    asyncio.current_task().set_name("root")
    async with asyncio.TaskGroup() as group:
        for number in range(2):
            group.create_task(middle(number), name=f"middle-{number}")
        print("ready", flush=True)
        print(json.dumps({name: thread.native_id for name, thread in threads.items()}), flush=True)


asyncio.run(main())
