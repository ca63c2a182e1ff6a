# Maps a library of 40 MB: a million symbols, each named by an entire string table that is not terminated.
import struct
import time

from hostile import Mapped, elf, ready

COUNT = 1_000_000
symbol = struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0, 0)  # a global function
mapped = Mapped("symbols.so", elf([], b"\0", symbol * COUNT, b"\0" + b"P" * 16_000_000))
ready()
while True:  # later mappings take another code path of the tool
    time.sleep(0.3)
    mapped.renew()
