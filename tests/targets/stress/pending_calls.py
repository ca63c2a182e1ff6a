# The main thread only calls Py_AddPendingCall; so does another thread.
import ctypes

library = ctypes.PyDLL(FOLDER + "/stress.so")
add = ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, ctypes.c_void_p)
library.stress_add_pending.restype = ctypes.c_long
library.stress_pending_ran.restype = ctypes.c_long
added = [0, 0]


def adder(who):
    def work():
        added[who] += library.stress_add_pending(add, 200)

    return work


def end():
    deadline = time.monotonic() + 20
    while library.stress_pending_ran() < sum(added) and time.monotonic() < deadline:
        calls()
    expect(library.stress_pending_ran(), sum(added))


torture(adder(0), [adder(1)], end=end)
