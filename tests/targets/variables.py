"""Prints `ready`, then, as JSON, what `dump --locals` must show of a function's variables, and waits in that function.

With the argument `tasks`: three tasks of asyncio wait, and the JSON object is empty.
"""

import asyncio
import collections
import http
import json
import os
import sys
import threading


class Shop:
    def total(self):
        return 1


class Tag(str):
    pass


class Failure(Exception):
    pass


Point = collections.namedtuple("Point", "x y")


def at(value, name=None):
    return f"<{name or type(value).__name__} at {id(value):#x}>"


def numbers():
    yield 1


async def fetch(_):
    pass


def wait(values):
    print("ready", json.dumps(values), sep="\n", flush=True)
    sys.stdin.readline()


def function(first, /, second=2, *rest, key=None, **more):
    shared = ["one", 2]

    def inner():
        return shared

    nothing, true, false, dots, wrong = None, True, False, ..., NotImplemented
    zero, small, negative, large, power = 0, 7, -12345, 2**100, -(10**30)
    pi, whole, tiny, infinite, huge, undefined = 3.14, 2.0, 1e-05, float("-inf"), 1e16, float("nan")
    quotes, accents, wide, controls, empty = "it's", "é", "grün€😀", "a\nb\t\x01\\", ""
    octets, array = b"a\x00\xff'", bytearray(b"xyz")
    elements, none, one, pair = [1, "a", None], [], (1,), (1, 2.5)
    unique, nobody, frozen = {1}, set(), frozenset({"a"})
    mapping, nested, no_items = {"a": 1, 2: [3]}, {"a": {"b": [(1, {2})]}}, {}
    steps, part = range(1, 10, 2), slice(1, None, 2)
    point, error, failure = Point(1, 2), ValueError("bad", 3), Failure("mine")
    circle = [1]
    circle.append(circle)
    module, kind, builtin = os, int, len
    # Not as repr() writes them.
    expected = {name: repr(value) for name, value in locals().items() if name not in ("more", "expected")}
    expected |= {"more": repr(more), "point": "Point(1, 2)"}
    complexity = 1 + 2j
    expected["complexity"] = "complex(1.0, 2.0)"
    expected["module"] = "<module 'os'>"
    shop, lock, tag, status = Shop(), threading.Lock(), Tag("t"), http.HTTPStatus.OK
    expected |= {"shop": at(shop), "lock": at(lock, "_thread.lock"), "tag": "Tag('t')", "status": "HTTPStatus(200)"}
    method, generator, coroutine = shop.total, numbers(), fetch(1)
    expected["method"] = f"<bound method Shop.total of Shop at {id(shop):#x}>"
    expected["generator"] = at(generator, "generator numbers")
    expected["coroutine"] = at(coroutine, "coroutine fetch")
    counter, ordered = collections.Counter("aab"), collections.OrderedDict(a=1)
    expected["counter"] = "Counter({'a': 2, 'b': 1})"
    expected["ordered"] = "collections.OrderedDict({'a': 1})"
    long, many, deep = "x" * 1000, list(range(1000)), [[[[[[[1]]]]]]]
    expected["long"] = repr("x" * 120) + "..."
    expected["many"] = "[" + ", ".join(map(str, range(20))) + ", ... 1000 in all]"
    expected["deep"] = "[[[[[[...]]]]]]"
    bits = 2**5000
    expected["bits"] = "<int of some 5010 bits>"
    wait(expected)
    unbound = inner
    return unbound


def crowd():
    async def handle(n):
        label = f"conn-{n}"
        await asyncio.sleep(1000)
        return label

    async def main():
        for n in range(3):
            asyncio.ensure_future(handle(n))
            asyncio.all_tasks()
        await asyncio.sleep(0)
        wait({})

    asyncio.run(main())


crowd() if sys.argv[1:] == ["tasks"] else function("first", 3, 4, 5, key="k", extra=1)
