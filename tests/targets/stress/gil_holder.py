# C code holds the GIL for a second at a time: it computes, or it sleeps.
import ctypes

library = ctypes.PyDLL(FOLDER + "/stress.so")
libc = ctypes.PyDLL(None)
turn = itertools.count()


def work():
    if next(turn) % 2:
        library.stress_spin(ctypes.c_long(1_000_000_000))
    else:
        expect(libc.usleep(999_999), 0)
    for _ in range(10):
        calls()


torture(work, [calls])
