# Another process queues numbered signals; a thread is in state D most of the time, so that stops fail at their deadline.
import ctypes

library = ctypes.CDLL(FOLDER + "/stress.so")
expect(library.stress_receive_numbers(), 0)
stop = (ctypes.c_uint64).from_buffer(PAGE)


def begin():
    expect(library.stress_send_numbers(ctypes.byref(stop)), 0)


def vfork():
    expect(library.stress_vfork(60_000_000), 0)
    calls()


def end():
    expect(library.stress_missing_numbers(), 0)


torture(calls, [vfork], begin=begin, end=end)
