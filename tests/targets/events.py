# On a line with three numbers it writes, reads and sets its umask that often, each in a function of
# its own, in turns, and answers with a line. Before, a child and a thread come and go: they inherit
# the events that record this process.
import os
import sys
import threading

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
    child = os.fork()  # before there are threads: otherwise Python writes a warning
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    thread = threading.Thread(target=os.getpid)
    thread.start()
    thread.join()
    serve([int(word) for word in line.split()])
    print("done", flush=True)
