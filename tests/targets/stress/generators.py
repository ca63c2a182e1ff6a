# Frames that are suspended and resumed, and exceptions that pass through them.
import asyncio


def count(n):
    try:
        for i in range(n):
            yield i
    finally:
        closed.append(n)


closed = []


def through(n):
    if n == 0:
        raise KeyError("deep")
    try:
        through(n - 1)
    finally:
        fib(3)


async def add(n):
    await asyncio.sleep(0)
    return n if n == 0 else n + await add(n - 1)


loop_generators = [count(10**9) for _ in range(5)]
expected = itertools.count()


def work():
    value = next(expected)
    expect([next(generator) for generator in loop_generators], [value] * 5)
    del closed[:]
    expect(list(zip(count(9), count(5))), [(i, i) for i in range(5)])
    expect(sorted(closed), [5, 9])
    try:
        through(20)
    except KeyError as error:
        expect(error.args, ("deep",))
    else:
        raise AssertionError("no KeyError")
    expect(asyncio.run(add(10)), 55)


torture(work, [calls])
