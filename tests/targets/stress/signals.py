# SIGALRM and SIGPROF at 1 kHz with handlers in Python.
import signal

ticks = {signal.SIGALRM: 0, signal.SIGPROF: 0}


def handler(number, frame):
    ticks[number] += 1
    expect(fib(5), 5)


for number in ticks:
    signal.signal(number, handler)


def begin():
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)


def work():
    for _ in range(10):
        calls()
    began = time.monotonic()
    time.sleep(0.003)
    expect(time.monotonic() - began >= 0.003, True)


def end():
    # SIGPROF counts CPU time, of which there may have been little.
    deadline = time.monotonic() + 20
    while not all(ticks.values()) and time.monotonic() < deadline:
        calls()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    expect(all(ticks.values()), True)


torture(work, [calls], begin=begin, end=end)
