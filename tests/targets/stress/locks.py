# Handovers between threads through queues and a condition variable.
import queue

there = queue.Queue(3)
back = queue.SimpleQueue()
condition = threading.Condition()
turn = 0


def work():
    global turn
    for i in range(5):
        there.put(i)
        expect(back.get(timeout=60), i + 1)
    with condition:
        turn = 1
        condition.notify()
        expect(condition.wait_for(lambda: turn == 0, timeout=60), True)


def add_one():
    try:
        back.put(there.get(timeout=0.1) + 1)
    except queue.Empty:
        pass


def flip():
    global turn
    with condition:
        if condition.wait_for(lambda: turn == 1, timeout=0.1):
            turn = 0
            condition.notify()


torture(work, [calls], [add_one, flip])
