# Cycles with finalizers and weak references, and code that is created and freed.
import gc
import weakref


class Node:
    deleted = 0

    def __init__(self):
        self.me = self

    def __del__(self):
        Node.deleted += 1


def work():
    called = []
    before = Node.deleted
    nodes = [Node() for _ in range(20)]
    watches = [weakref.ref(node, called.append) for node in nodes]
    del nodes
    gc.collect()
    expect(Node.deleted - before, 20)
    expect([watch() for watch in watches], [None] * 20)
    expect(len(called), 20)


def functions():
    space = {"fib": fib}
    for i in range(20):
        exec(f"def f(n):\n    return fib(n) + {i}\nclass C:\n    def m(self): return self\n    m.self = m", space)
        expect(space["f"](5), 5 + i)
        instance = space["C"]()
        expect(instance.m() is instance, True)


torture(work, [functions, functions])
