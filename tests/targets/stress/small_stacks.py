# Threads with stacks of 256 KiB.
threading.stack_size(256 * 1024)


def deep(n):
    return 0 if n == 0 else 1 + deep(n - 1)


# Start them before `ready`, so that the stacks too small for the trampoline are visible from the start.
begun = threading.Event()


def work():
    begun.wait()
    while not stopping():
        expect(deep(100), 100)
        PAGE[50] += 1


def guarded():
    try:
        work()
    except BaseException:
        blame()


threads = [threading.Thread(target=guarded) for _ in range(3)]
for thread in threads:
    thread.start()
torture(calls, begin=begun.set, end=lambda: [thread.join() for thread in threads])
