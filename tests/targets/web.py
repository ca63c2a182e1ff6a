# A gunicorn whose workers have threads and are replaced after some requests, and its client.
#
#   web.py serve SOCKET      execs gunicorn
#   web.py ask SOCKET N      sends N requests and prints the pids of the workers that answered, separated by blanks
import os
import socket
import sys
import time


def work():
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        sum(range(300))
    return str(os.getpid()).encode()


def application(_, start_response):
    body = work()
    start_response("200 OK", [("Content-Length", str(len(body))), ("Connection", "close")])
    return [body]


def answer(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(path)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        text = b""
        while part := connection.recv(4096):
            text += part
        return text.rpartition(b"\r\n\r\n")[2].decode()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        os.chdir(os.path.dirname(os.path.abspath(__file__)))
        arguments = ["-k", "gthread", "-w", "2", "--threads", "2", "--max-requests", "20", "--worker-tmp-dir",
                     os.path.dirname(sys.argv[2]), "-b", "unix:" + sys.argv[2], "web:application"]
        os.execv(sys.executable, [sys.executable, "-m", "gunicorn", *arguments])
    deadline = time.monotonic() + 60
    pids = {}
    while sum(pids.values()) < int(sys.argv[3]):
        try:
            pid = answer(sys.argv[2])
        except (ConnectionError, FileNotFoundError):  # not started yet, or the worker is being replaced
            pid = ""
        if pid:
            pids[pid] = pids.get(pid, 0) + 1
        elif time.monotonic() > deadline:
            sys.exit("no answer")
    # A worker that had only a few requests may not have a sample.
    print(*[pid for pid, count in pids.items() if count >= 10])
