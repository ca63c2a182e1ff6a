# The main thread cycles through blocking calls; four threads compete for the GIL.
import select
import socket

left, right = socket.socketpair()
lock = threading.Lock()
lock.acquire()
epoll = select.epoll()
epoll.register(left, select.EPOLLIN)
poll = select.poll()
poll.register(left, select.POLLIN)


def in_time(wait, seconds, wanted):
    began = time.monotonic()
    expect(wait(), wanted)
    expect(time.monotonic() - began >= seconds, True)


def work():
    in_time(lambda: time.sleep(0.002), 0.002, None)
    in_time(lambda: lock.acquire(timeout=0.002), 0.002, False)
    in_time(lambda: epoll.poll(0.002), 0.0019, [])
    in_time(lambda: poll.poll(2), 0.0019, [])
    in_time(lambda: select.select([left], [], [], 0.002), 0.002, ([], [], []))
    answer = threading.Thread(target=right.send, args=(b"x",))
    answer.start()
    expect(left.recv(10), b"x")
    answer.join()


torture(work, [calls] * 4)
