"""Tasks of asyncio that work in turns, each in a function of its own. A line with a number on stdin is answered after so many
milliseconds of processor time; stdin's end ends it.

| Task | Function |
|---|---|
| `crunch: α` | `first` |
| without a name of its own: `Task-` and a number | `second` |
| that of `asyncio.run`, likewise | `watch` |
| none: between two loops | `outside` |
"""

import asyncio
import sys
import time


def burn():
    total = 0
    for i in range(3000):
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
