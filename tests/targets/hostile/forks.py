# Forks of a process with 29,000 mappings; each fork maps one more page.
import mmap
import os
import time

from hostile import ready
from unwinding import map_library, map_page, table

map_library("page.so", table(b""))
fd = os.open("page.so", os.O_RDONLY)
for number in range(29_000):
    map_page(fd, mmap.PROT_READ | (mmap.PROT_EXEC if number % 2 else 0))
ready()
while True:
    for _ in range(25):
        if os.fork() == 0:
            map_page(fd, mmap.PROT_READ | mmap.PROT_EXEC)
            os._exit(0)
    for _ in range(25):
        os.wait()
    time.sleep(0.3)
