"""A program that works forever in call trees that it reports: from `<module>` to every function, for each thread.

    call_tree_server.py [deep|long]

It prints `ready`, then a line for each node of its trees, `NUMBER PARENT THREAD NAME:FILE` (the parent of a root is
-1), and a line with a dot. A profile function, removed before `ready`, has collected the trees with `frame.f_back` in
the first rounds. All their functions were entered before `ready`, except those that the rounds call repeatedly.

A line with a number N on stdin is answered after N more rounds of the main thread with the number of wrong ones so
far; a line `fork N` after the exit of a child that made N rounds, with that child's pid; `nest` immediately, and from
then on there are two more functions between `main` and the rounds. It exits when its stdin is closed.

Nearly all time is spent in the functions named burn_*; with `long` all but one to three samples in a hundred.
"""

import asyncio
import contextlib
import functools
import marshal
import os
import re
import select
import sys
import threading
import types

os.environ["OPENBLAS_NUM_THREADS"] = "1"
try:
    import numpy
except ImportError:
    numpy = None

LONG = sys.argv[1:] == ["long"]
COUNT = 6400  # until the trees are complete
LONG_COUNT = 256000
LEARNING_ROUNDS = 3
ROUNDS_BETWEEN_LOOKS = 1 if LONG else 8  # polling stdin releases the GIL

trees = {}  # per thread: {label: subtree}
learned = threading.Semaphore(0)
all_learned = threading.Event()
settled = threading.Semaphore(0)
running = True


def note(frame, event, _):
    if event != "call":
        return
    chain = []
    while frame:
        chain.append(f"{frame.f_code.co_qualname}:{frame.f_code.co_filename}")
        frame = frame.f_back
    node = trees.setdefault(threading.get_native_id(), {})
    for label in reversed(chain):
        node = node.setdefault(label, {})


def burner(name):
    """A separate function of that name."""

    def burn(count):
        total = 0
        for i in range(count):
            total += i & 7
        return total

    return types.FunctionType(burn.__code__.replace(co_name=name, co_qualname=name), globals(), name)


burn_method = burner("burn_method")
burn_generator = burner("burn_generator")
burn_key = burner("burn_key")
burn_reduce = burner("burn_reduce")
burn_map = burner("burn_map")
burn_replacement = burner("burn_replacement")
burn_managed = burner("burn_managed")
burn_recursion = burner("burn_recursion")
burn_array = burner("burn_array")
burn_child = burner("burn_child")
burn_engine = burner("burn_engine")
burn_pumped = burner("burn_pumped")
burn_coroutine = burner("burn_coroutine")
burn_async_generator = burner("burn_async_generator")
burn_deep = burner("burn_deep")


class Base:
    def handle(self, count):
        return self.work(count)

    def work(self, count):
        return self.down(2, count)

    def down(self, levels, count):
        return self.down(levels - 1, count) if levels else burn_method(count)


class Special(Base):
    def handle(self, count):
        return super().handle(count)

    def work(self, count):
        return super().work(count)


class Stream:
    def total(self, count):
        return sum(self.produce(count))

    def produce(self, count):
        yield from self.halves(count)

    def halves(self, count):
        for _ in range(2):
            yield burn_generator(count // 2)


class Ranking:
    def by_key(self, count):
        weights = []

        def key(value):
            weights.append(burn_key(count // 4))
            return -value

        return sum(weights) if sorted(range(4), key=key) == [3, 2, 1, 0] else -1


def reduced(count):
    return functools.reduce(lambda total, part: total + burn_reduce(part), [count // 2] * 2, 0)


def mapped(count):
    return sum(map(burn_map, [count // 4] * 4))


def replaced(count):
    total = 0

    def replacement(match):
        nonlocal total
        total += burn_replacement(count // 2)
        return match.group().upper()

    return total if re.sub("[ac]", replacement, "abc") == "AbC" else -1


@contextlib.contextmanager
def managed(count):
    yield burn_managed(count)


def descend(levels, count):
    if levels:
        return descend(levels - 1, count)
    return burn_recursion(count)


def arrays(count):
    if numpy is None:
        return burn_array(count)
    return sum(numpy.frompyfunc(burn_array, 1, 1)(numpy.array([count // 2] * 2)))


def one_round(count):
    with managed(count) as total:
        total += Special().handle(count) + Stream().total(count) + Ranking().by_key(count)
    return total + reduced(count) + mapped(count) + replaced(count) + descend(6, count) + arrays(count)


def dig(levels, count):
    """Recurses, through C code at every sixth level."""
    if not levels:
        return burn_deep(count)
    if levels % 6 == 0:
        return functools.reduce(lambda _, rest: dig(levels - 1, rest), [0, count])
    return dig(levels - 1, count)


def one_deep_round(count):
    return dig(200, 9 * count)


def child_round(count):
    return burn_child(count)


def spawn(rounds, lesson=None):
    """Forks a child that exits after ROUNDS. It writes all its calls to the pipe LESSON, even the hooks of fork()."""
    child = os.fork()
    if child == 0:
        for _ in range(rounds):
            child_round(COUNT)
        if lesson is not None:
            sys.setprofile(None)
            os.write(lesson, marshal.dumps(trees[threading.get_native_id()]))
        os._exit(0)
    elif os.waitpid(child, 0)[1] == 0:
        return child
    return -1


class Engine:
    """Works in its __init__: the interpreter specializes that call after some instances."""

    def __init__(self, rounds):
        while running and rounds:
            rounds -= 1
            burn_engine(COUNT)
            if rounds == sys.maxsize - 1:
                settled.release()


def engine():
    Engine(LEARNING_ROUNDS)
    stop_learning()
    all_learned.wait()  # nothing is specialized under a profile function
    for rounds in [1] * 100 + [sys.maxsize]:
        Engine(rounds)


def pump():
    rounds = 0
    while running:
        burn_pumped(COUNT)
        rounds += 1
        if rounds == LEARNING_ROUNDS:
            stop_learning()
    yield rounds


def pumped():
    return list(pump())


def spin():
    """A loop without calls."""
    stop_learning()
    total = 0
    while running:
        total += 1


async def steps(count):
    for _ in range(2):
        await asyncio.sleep(0)
        yield burn_async_generator(count)


async def visit(count):
    burn_coroutine(count)
    await asyncio.sleep(0)
    async for _ in steps(count):
        pass


async def patrol():
    rounds = 0
    while running:
        await asyncio.gather(visit(COUNT), visit(COUNT))
        rounds += 1
        if rounds == LEARNING_ROUNDS:
            stop_learning()


def event_loop():
    asyncio.run(patrol())


def stop_learning():
    sys.setprofile(None)
    learned.release()


def label_of(function):
    code = function.__code__
    return f"{code.co_qualname}:{code.co_filename}"


# While a generator or coroutine is created, its function is above the caller, for which there is no profile event.
MADE_BY = {
    "event_loop": patrol,
    "patrol": visit,
    "visit": steps,
    "pumped": pump,
    "Stream.total": Stream.produce,
    "Stream.produce": Stream.halves,
    "_GeneratorContextManagerBase.__init__": managed.__wrapped__,
}


def add(tree, learned_elsewhere):
    for label, below in learned_elsewhere.items():
        add(tree.setdefault(label, {}), below)


def tell_trees():
    number = 0
    lines = ["ready"]

    def tell(node, parent, thread):
        nonlocal number
        for label, below in node.items():
            made = MADE_BY.get(label.partition(":")[0])
            if made:
                below.setdefault(label_of(made), {})
            lines.append(f"{number} {parent} {thread} {label}")
            number += 1
            tell(below, number - 1, thread)

    for thread, tree in trees.items():
        tell(tree, -1, thread)
    print("\n".join([*lines, "."]), flush=True)


def attend(work, lessons=0):
    """Runs rounds and commands until the end of stdin; with LESSONS, calls all that it can once and returns."""
    served = 0
    wrong = 0
    answer_at = None
    while True:
        served += 1
        wrong += work(COUNT) != 9 * (COUNT // 8 * 28)  # 0 + 1 + ... + 7 that many times
        if lessons and served == LEARNING_ROUNDS:
            reading, writing = os.pipe()
            spawn(1, writing)
            add(trees[threading.get_native_id()], marshal.loads(os.read(reading, 1 << 16)))
            os.close(reading)
            os.close(writing)
            return nested(work, lessons - 1) if lessons > 1 else None
        if served == answer_at:
            print(wrong, flush=True)
        if not lessons and served % ROUNDS_BETWEEN_LOOKS == 0 and select.select([0], [], [], 0)[0]:
            command = os.read(0, 100).split()
            if not command:
                return
            if command[0] == b"fork":
                print(spawn(int(command[1])), flush=True)
            elif command[0] == b"nest":
                print(0, flush=True)
                return nested(work)
            else:
                answer_at = served + int(command[0])


def nested(work, lessons=0):
    return attend(work, lessons)


def serve(work):
    global COUNT, running
    sys.setprofile(note)
    attend(work, 2)
    stop_learning()
    for _ in range(threading.active_count()):
        learned.acquire()
    all_learned.set()
    if threading.active_count() > 1:
        settled.acquire()
    tell_trees()
    COUNT = LONG_COUNT if LONG else COUNT
    attend(work)
    running = False


def main():
    deep = sys.argv[1:] == ["deep"]
    threading.setprofile(note)
    others = [] if deep else [threading.Thread(target=target) for target in (engine, pumped, spin, event_loop)]
    for other in others:
        other.start()
    list(map(serve, [one_deep_round if deep else one_round]))
    for other in others:
        other.join()


main()
