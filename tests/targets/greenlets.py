# Greenlets that switch in the middle of chains of calls, from Python and within C (sorted's key). The C stack below a
# greenlet changes: it is started where the thread's functions are deep, and runs on where they are not.
import sys

import greenlet


def burn_a(n):
    for _ in range(n):
        pass


def burn_b(n):
    for _ in range(n):
        pass


def burn_c(n):
    for _ in range(n):
        pass


def burn_main(n):
    for _ in range(n):
        pass


def work_a():
    burn_a(20000)
    hub.switch()


def root_a():
    while True:
        work_a()


def key(value):
    burn_b(10000)
    hub.switch()
    return -value


def root_b():
    while True:
        sorted([1, 2], key=key)


def root_c():
    burn_c(20000)
    hub.switch()


# A greenlet that starts greenlets, which end.
def root_starter():
    while True:
        started = greenlet.greenlet(root_c)
        while not started.dead:
            started.switch()


def start(depth):
    if depth:
        return start(depth - 1)
    for each in greenlets:
        each.switch()


def run(rounds):
    while rounds:
        rounds -= 1
        for each in greenlets:
            each.switch()
        burn_main(20000)


def deeper(rounds):
    list(map(run, [rounds]))


hub = greenlet.getcurrent()
greenlets = [greenlet.greenlet(root) for root in (root_a, root_b, root_starter)]
start(20)
if "spin" in sys.argv:
    burn_a = burn_b = burn_c = burn_main = abs
print("ready", flush=True)
while True:
    run(3)
    deeper(3)
