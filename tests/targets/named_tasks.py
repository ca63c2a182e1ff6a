"""Tasks of asyncio that work in turns, each in its own function. A line with a number on stdin is answered after that many
milliseconds of CPU time. It exits when its stdin is closed.

| Task | Function |
|---|---|
| `crunch: α` | `first` |
| without an explicit name: `Task-` and a number | `second` |
| the task of `asyncio.run`, likewise | `watch` |
| none: between two loops | `outside` |
"""

import asyncio
import random
import sys
import time


def burn():
    """Works. Turns of equal lengths could be in step with the samples."""
    total = 0
    for i in range(random.randrange(6000)):
        total += i & 7
    return total


async def first():
    while True:
        burn()
        await asyncio.sleep(0)


async def second():
    while True:
        burn()
        await asyncio.sleep(0)


async def watch(milliseconds):
    until = time.process_time() + milliseconds / 1000
    workers = [asyncio.create_task(first(), name="crunch: α"), asyncio.create_task(second())]
    while time.process_time() < until:
        burn()
        await asyncio.sleep(0)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)


def outside(milliseconds):
    until = time.process_time() + milliseconds / 1000
    while time.process_time() < until:
        burn()


print("ready", flush=True)
for line in sys.stdin:
    asyncio.run(watch(int(line)))
    outside(int(line) / 4)
    print("worked", flush=True)
