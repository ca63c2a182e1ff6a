# Maps a file that resembles an interpreter, with 65,000 sections whose names are not terminated.
import struct
import time

from hostile import Mapped, elf, ready

strings = b"\0Py_Initialize\0PyRun_SimpleStringFlags\0_PyRuntime\0Py_Version\0"
symbols = bytes(24)
for name in (b"Py_Initialize", b"PyRun_SimpleStringFlags", b"_PyRuntime", b"Py_Version"):
    symbols += struct.pack("<IBBHQQ", strings.index(name), 0x12, 0, 1, 64, 8)
section = struct.pack("<IIQQQQIIQQ", 1, 1, 0, 0, 0, 0, 0, 0, 1, 0)
mapped = Mapped("libpython3.13.so", elf([section] * 65_000, b"\0" + b"." * 15_000_000, symbols, strings))
ready()
while True:
    time.sleep(0.3)
    mapped.renew()
