"""Sends requests to a server on this machine: http_load.py PORT SECONDS. Four persistent connections; limited in number
and time. Prints "loading" after the first answers."""
import http.client
import sys
import threading
import time

PORT = int(sys.argv[1])
UNTIL = time.monotonic() + float(sys.argv[2])
MOST = 200_000
answered = [threading.Event() for _ in range(4)]


def load(which):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=10)
    for number in range(MOST):
        if time.monotonic() > UNTIL:
            break
        path = "/threaded/" if number % 8 == 7 else "/items/"
        try:
            connection.request("GET", f"{path}{number % 100}")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException):
            if answered[which].is_set():
                return  # the server has exited
            time.sleep(0.01)
            connection.close()
            continue
        answered[which].set()


threads = [threading.Thread(target=load, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
for event in answered:
    event.wait(60)
print("loading", flush=True)
for thread in threads:
    thread.join()
