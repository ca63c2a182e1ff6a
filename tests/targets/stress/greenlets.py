# Pieces of the C stack are copied away and back, with trampolines on them.
import greenlet


def produce(n):
    for i in range(n):
        fib(4)
        greenlet.getcurrent().parent.switch(i)
    return -1


def deep_produce(n, depth):
    return produce(n) if depth == 0 else deep_produce(n, depth - 1)


def work():
    producers = [greenlet.greenlet(deep_produce) for _ in range(5)]
    for number, producer in enumerate(producers):
        expect(producer.switch(10, number * 5), 0)
    for i in range(1, 10):
        expect([producer.switch() for producer in producers], [i] * 5)
    expect([producer.switch() for producer in producers], [-1] * 5)


torture(work, [work])
