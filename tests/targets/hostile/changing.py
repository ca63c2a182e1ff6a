# 30,000 thread states with small stacks, whose thread ids keep changing.
import ctypes

from hostile import STATE, Offsets, fake_threads, ready

COUNT = 30_000
offsets = Offsets()
kept, base = fake_threads(offsets, COUNT, range(100_000, 130_000))
one = ctypes.string_at(base, COUNT * STATE)
other = bytearray(one)
for number in range(COUNT):
    at = number * STATE + offsets.thread_id
    other[at] ^= 0x40  # of the address
other = bytes(other)
ready()
while True:
    ctypes.memmove(base, other, COUNT * STATE)
    ctypes.memmove(base, one, COUNT * STATE)
