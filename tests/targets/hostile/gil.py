# 24 processes that never release their GIL.
import ctypes
import os
import signal

from hostile import ready

for number in range(23):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        break
else:
    ready()
while True:
    ctypes.PyDLL(None).sleep(1000)
