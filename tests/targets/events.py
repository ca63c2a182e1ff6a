# On a line with three numbers it writes, reads and sets its umask that often, each in a function of
# its own, in turns, and answers with a line.
import os
import sys

NULL = os.open("/dev/null", os.O_RDWR)


def writes():
    os.write(NULL, b"x")


def reads():
    os.pread(NULL, 1, 0)


def masks():
    os.umask(0o22)


def serve(counts):
    left = dict(zip((writes, reads, masks), counts))
    while any(left.values()):
        for call in left:
            if left[call]:
                left[call] -= 1
                call()


print("ready", flush=True)
for line in sys.stdin:
    serve([int(word) for word in line.split()])
    print("done", flush=True)
