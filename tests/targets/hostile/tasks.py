# A Python with 3,000 waiting threads, and threads that keep starting and exiting.
import threading

from hostile import ready

held = threading.Lock()
held.acquire()
for _ in range(3000):
    threading.Thread(target=held.acquire, daemon=True).start()
ready()
while True:
    short = threading.Thread(target=int)
    short.start()
    short.join()
