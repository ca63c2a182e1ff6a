# Runs code of 400 libraries, one after the other. The names of their functions cost most to read: a mangled name that doubles
# with each of 30 substitutions, and one that begins as those of CPython's calls do, and repeats that 900 times, in a file that is
# called as the interpreter's is.
import ctypes
import itertools
import mmap
import os
import struct

from hostile import elf, ready
from unwinding import map_page

COUNT = 400
# mov $100000,%ecx; dec %ecx; jnz to dec; ret: some tens of microseconds
CODE = b"\xb9" + struct.pack("<I", 100_000) + b"\xff\xc9\x75\xfc\xc3"


def doubling(levels):
    """A template whose arguments name the one before them twice."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "_Z1f1AIiiE" + "".join(f"S_IS{digits[level]}_S{digits[level]}_E" for level in range(levels))


def library(name, symbol):
    strings = b"\0" + symbol.encode() + b"\0"
    code_at = 64 + 56 + 2 * 24 + len(strings)
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, code_at, len(CODE))
    with open(name, "wb") as file:
        file.write(elf([], CODE, symbols, strings))
    fd = os.open(name, os.O_RDONLY)
    address = map_page(fd, mmap.PROT_READ | mmap.PROT_EXEC)
    os.close(fd)
    return ctypes.CFUNCTYPE(None)(address + code_at)


kinds = ("library", doubling(30)), ("libpython3.", "_Py_" + "Call" * 900)
functions = []
for number in range(COUNT):
    file, symbol = kinds[number % 2]
    functions.append(library(f"{file}{number}.so", symbol))
ready()
for function in itertools.cycle(functions):
    function()
