# services.py REASON [DIRECTORY [alone]]: a service that is slow for this reason. Prints "ready" once it is.
import asyncio
import gc
import hashlib
import mmap
import os
import re
import signal
import socket
import struct
import sys
import tempfile
import threading
import time


def start(function, count=4):
    for i in range(count):
        threading.Thread(target=function, name=f"worker-{i}", daemon=True).start()


def ready():
    print("ready", flush=True)


def compute(rounds):
    total = 0
    for i in range(rounds):
        total += i * i % 7
    return total


def handle_in_python():
    while True:
        compute(10_000)


BEGIN = threading.Event()


def handle_in_python_when_told():
    BEGIN.wait()
    handle_in_python()


# The GIL is not fair: with workers that never stop, starting the next one took up to a minute on 3.13.
def gil():
    start(handle_in_python_when_told)
    ready()
    BEGIN.set()
    threading.Event().wait()


SHARED = threading.Lock()


def handle_with_lock():
    while True:
        with SHARED:
            time.sleep(0.005)  # as if it called a server


def lock():
    start(handle_with_lock)
    ready()
    threading.Event().wait()


def disk():
    block = mmap.mmap(-1, 4 << 20)
    with tempfile.NamedTemporaryFile(dir=sys.argv[2]) as file:
        # Without the page cache: copying into it takes as long as a fast disk does.
        fd = os.open(file.name, os.O_RDWR | os.O_DIRECT)
        ready()
        while True:
            os.pwrite(fd, block, 0)
            os.fsync(fd)


# Answers each byte after some milliseconds, in a process of its own.
def serve_slowly(listener):
    def answer(connection):
        while connection.recv(1):
            time.sleep(0.05)
            connection.sendall(b"x")

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def query(address):
    with socket.create_connection(address) as connection:
        while True:
            connection.sendall(b"q")
            connection.recv(1)


def network():
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    parent = os.getpid()
    if os.fork() == 0:
        threading.Thread(target=serve_slowly, args=(listener,), daemon=True).start()
        while os.getppid() == parent:
            time.sleep(0.1)
        os._exit(0)
    listener.close()
    start(lambda: query(address))
    ready()
    threading.Event().wait()


async def call(address):
    reader, writer = await asyncio.open_connection(*address)
    while True:
        writer.write(b"q")
        await reader.read(1)


# 20 tasks that wait for a server that never answers.
def upstream():
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    parent = os.getpid()
    if os.fork() == 0:
        while os.getppid() == parent:
            time.sleep(0.1)
        os._exit(0)
    listener.close()

    async def call_all():
        asyncio.get_running_loop().call_later(0.1, ready)
        await asyncio.gather(*(call(address) for _ in range(20)))

    asyncio.run(call_all())


FIRST, SECOND = threading.RLock(), threading.RLock()


def transfer(one, other, meeting):
    with one:
        meeting.wait()
        with other:
            pass


def deadlock():
    meeting = threading.Barrier(3)
    for locks in ((FIRST, SECOND), (SECOND, FIRST)):
        threading.Thread(target=transfer, args=(*locks, meeting), daemon=True).start()
    meeting.wait()
    ready()
    threading.Event().wait()


KEPT = []


def keep():
    while True:
        KEPT.append(b"x" * 100_000)
        time.sleep(0.01)


def leak():
    ready()
    keep()


def make_cycle():
    one = []
    one.append(one)


# Many objects, and all of them are examined each time.
def collector():
    KEPT.extend([i] for i in range(200_000))
    ready()
    while True:
        make_cycle()
        gc.collect()


def regex():
    pattern = re.compile(r"(a+)+b")
    ready()
    while True:
        pattern.search("a" * 20)


def stopped():
    ready()
    os.kill(os.getpid(), signal.SIGSTOP)
    threading.Event().wait()


def c():
    data = bytes(1 << 22)
    ready()
    while True:
        hashlib.sha256(data).digest()


def python():
    ready()
    handle_in_python()


# A quarter of the time.
def seldom():
    ready()
    while True:
        compute(10_000)
        time.sleep(0.003)


# Touches memory that it has given back before.
def faults():
    size = 64 << 20
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # a shared one keeps its pages
    one = struct.pack("B", 1) * (size // 4096)
    ready()
    while True:
        memory[::4096] = one
        memory.madvise(mmap.MADV_DONTNEED)


# One short thread at a time; the next one starts when the last one has left the kernel.
def threads():
    ready()
    while True:
        thread = threading.Thread(target=compute, args=(2000,))
        thread.start()
        thread.join()
        while os.path.exists(f"/proc/self/task/{thread.native_id}"):
            time.sleep(0.0005)


async def tick():
    while True:
        await asyncio.sleep(0.001)


async def handle_request():
    while True:
        time.sleep(0.3)  # should be asyncio.sleep()
        await asyncio.sleep(0.05)


async def serve():
    ready()
    await asyncio.gather(tick(), handle_request())


def event_loop():
    asyncio.run(serve())


def wait_for_work(event):
    while True:
        event.wait()


def idle():
    event = threading.Event()
    start(lambda: wait_for_work(event))
    listener = socket.create_server(("127.0.0.1", 0))
    ready()
    listener.accept()


# No other test runs at the same time: the rest of the machine does not take its CPU. Next to others it would take theirs.
if sys.argv[3:] == ["alone"]:
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
globals()[sys.argv[1]]()
