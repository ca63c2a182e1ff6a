# On a line with a number it makes that many rounds of calls and answers with a line of JSON: for each event and source line,
# how often, for how many nanoseconds, and the median of these times. A child process answers reads after known delays.
import json
import mmap
import os
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time

PAGE = mmap.PAGESIZE
spent = {}


class Moment:
    def __init__(self):
        usage = resource.getrusage(resource.RUSAGE_THREAD)
        self.faults = usage.ru_minflt
        self.switches = usage.ru_nvcsw + usage.ru_nivcsw
        self.time = time.monotonic_ns()


def count(event, line, times, nanoseconds):
    entry = spent.setdefault((event, line), [0, []])
    entry[0] += times
    entry[1].append(nanoseconds)


# The line before the caller's has made TIMES calls since SINCE.
def note(call, since, times=1):
    now = time.monotonic_ns()
    moment = Moment()
    line = sys._getframe(1).f_lineno - 1
    count("syscalls:sys_enter_" + call, line, times, now - since.time)
    count("sched:sched_switch", line, moment.switches - since.switches, 0)
    return Moment()


def note_faults(since):
    moment = Moment()
    count("page-faults/period=1/", sys._getframe(1).f_lineno - 1, moment.faults - since.faults, 0)


def answer(requests, replies):
    while request := os.read(requests, 1):
        time.sleep(request[0] / 1000)
        os.write(replies, b"x")
    os._exit(0)


def release(requests, lock):
    while request := os.read(requests, 1):
        time.sleep(request[0] / 1000)
        lock.release()


# Each kind of call has two lines.
class Rounds:
    def __init__(self):
        self.local, remote = socket.socketpair()
        self.reader, replies = os.pipe()
        asked, self.asks = os.pipe()
        if os.fork() == 0:
            os.close(self.asks)
            self.local.close()
            if os.fork() == 0:
                answer(remote.fileno(), remote.fileno())
            remote.close()
            answer(asked, replies)
        held, self.holds = os.pipe()
        self.lock = threading.Lock()
        threading.Thread(target=release, args=(held, self.lock), daemon=True).start()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.file = tempfile.TemporaryFile(buffering=0)

    def ask(self, milliseconds):
        os.write(self.asks, bytes([milliseconds]))
        return Moment()

    def files(self):
        at = self.ask(8)
        os.read(self.reader, 1)
        note("read", at)
        at = self.ask(2)
        os.read(self.reader, 1)
        at = note("read", at)
        os.write(self.file.fileno(), b"three times") + os.write(self.file.fileno(), b"x") + os.write(self.file.fileno(), b"x")
        at = note("write", at, 3)
        os.write(self.file.fileno(), b"once")
        at = note("write", at)
        os.fsync(self.file.fileno())
        note("fsync", at)

    def sockets(self):
        at = self.send(6)
        self.local.recv(1)
        note("recvfrom", at)
        at = self.send(2)
        self.local.recv(1)
        note("recvfrom", at)
        with socket.socket() as one, socket.socket() as two, socket.socket() as three:
            at = Moment()
            one.connect(self.listener.getsockname()) or two.connect(self.listener.getsockname())
            at = note("connect", at, 2)
            three.connect(self.listener.getsockname())
            note("connect", at)
            for _ in range(3):
                self.listener.accept()[0].close()

    def send(self, milliseconds):
        self.local.send(bytes([milliseconds]))
        return Moment()

    def locks(self):
        at = self.hold(9)
        self.lock.acquire()
        note("futex", at)
        self.lock.release()
        at = self.hold(3)
        self.lock.acquire()
        note("futex", at)
        self.lock.release()

    def hold(self, milliseconds):
        self.lock.acquire()
        os.write(self.holds, bytes([milliseconds]))
        return Moment()

    def memory(self):
        at = Moment()
        wide, other = mmap.mmap(-1, 30 * PAGE), mmap.mmap(-1, PAGE)
        at = note("mmap", at, 2)
        narrow = mmap.mmap(-1, 10 * PAGE)
        note("mmap", at)
        ones = b"1" * 30
        at = Moment()
        wide[::PAGE] = ones
        note_faults(at)
        at = Moment()
        narrow[::PAGE] = ones[:10]
        note_faults(at)
        for area in wide, narrow, other:
            area.close()

    def objects(self, size=3000):
        """Above 512 bytes, CPython calls the allocator of the C library."""
        kept = bytes(size), bytes(size), bytes(size)
        count("calloc", sys._getframe().f_lineno - 1, 3, 0)
        kept = bytes(size)
        count("calloc", sys._getframe().f_lineno - 1, 1, 0)
        kept = b"xy" * size
        count("malloc", sys._getframe().f_lineno - 1, 1, 0)
        del kept


rounds = Rounds()
print("ready", flush=True)
for line in sys.stdin:
    spent.clear()
    for _ in range(int(line)):
        rounds.files()
        rounds.sockets()
        rounds.locks()
        rounds.memory()
        rounds.objects()
    print(json.dumps([[*key, times, sum(each), statistics.median_low(each)] for key, (times, each) in spent.items()]), flush=True)
