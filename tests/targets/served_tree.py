"""A program that serves requests forever; every request runs the same known call tree.

    served_tree.py [COUNT] [on-request]

It prints `ready` once it has started; with `on-request`, it then works only to answer. A line with a number N on stdin is answered after N more requests with the number
of requests served and the number of wrong results among them. It exits when its stdin is closed.

Nearly all time is spent in the functions named burn_*, each a loop of COUNT turns, so the chain of nearly every sample is one of those in tests/e2e/served_tree.hpp.
"""

import select
import sys

ON_REQUEST = "on-request" in sys.argv[1:]
COUNT = next((int(word) for word in sys.argv[1:] if word.isdigit()), 32000)
BURNT = COUNT // 8 * 28  # 0 + 1 + ... + 7 that many times


def burn_method(count):
    total = 0
    for i in range(count):
        total += i & 7
    return total


def burn_generator(count):
    total = 0
    for i in range(count):
        total += i & 7
    return total


def burn_key(count):
    total = 0
    for i in range(count):
        total += i & 7
    return total


def burn_recursion(count):
    total = 0
    for i in range(count):
        total += i & 7
    return total


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
        return self.drain(count)

    def drain(self, count):
        total = 0
        for value in self.produce(count):
            total += value
        return total

    def produce(self, count):
        yield from self.halves(count)

    def halves(self, count):
        for _ in range(2):
            yield self.step(count // 2)

    def step(self, count):
        return burn_generator(count)


class Ranking:
    def order(self, count):
        return self.arrange(count)

    def arrange(self, count):
        return self.by_key(count)

    def by_key(self, count):
        weights = []

        def key(value):
            weights.append(self.weigh(count // 4))
            return -value

        return sum(weights) if sorted(range(4), key=key) == [3, 2, 1, 0] else -1

    def weigh(self, count):
        return burn_key(count)


def descend(levels, count):
    if levels:
        return descend(levels - 1, count)
    return burn_recursion(count)


def request(count):
    return (
        Special().handle(count)
        + Stream().total(count)
        + Ranking().order(count)
        + descend(6, count)
    )


def serve():
    served = 0
    wrong = 0
    answer_at = None
    print("ready", flush=True)
    while True:
        served += 1
        wrong += request(COUNT) != 4 * BURNT
        if served == answer_at:
            print(served, wrong, flush=True)
            answer_at = None
        if select.select([sys.stdin], [], [], None if ON_REQUEST and answer_at is None else 0)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            answer_at = served + int(line)


serve()
