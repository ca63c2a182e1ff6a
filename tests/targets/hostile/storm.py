# Processes that keep starting and exiting: forks of a Python, and programs.
import ctypes
import os
import signal

from hostile import ready

if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    while True:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
ready()
while True:
    child = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(child, 0)
