"""Files with unwind tables that no compiler generates, and a stack through them."""
import ctypes
import mmap
import os
import struct

PAGE = 4096
TABLE_AT = 0x1000


def entry(body):
    body += bytes((len(body) + 7) // 8 * 8 + 4 - len(body))
    return struct.pack("<I", len(body)) + body


def table(program):
    """A table for one function of a page: the rules that compilers start with, then PROGRAM."""
    common = entry(struct.pack("<I", 0) + b"\x01zR\0\x01\x78\x10\x01\x03\x0c\x07\x08\x90\x01")
    return common + entry(struct.pack("<III", len(common) + 4, 0, PAGE) + b"\0" + program) + struct.pack("<I", 0)


def map_library(name, unwind_table, size=0):
    """Maps a sparse library whose .eh_frame claims SIZE bytes. Returns its address."""
    size = max(size, len(unwind_table))
    names = b"\0.eh_frame\0.shstrtab\0"
    begin = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0x200, 0, 64, 56, 1, 64, 3, 2)
    begin += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, TABLE_AT + size, TABLE_AT + size, PAGE) + names
    begin += bytes(0x200 - len(begin)) + bytes(64)
    begin += struct.pack("<IIQQQQIIQQ", 1, 1, 2, TABLE_AT, TABLE_AT, size, 0, 0, 8, 0)
    begin += struct.pack("<IIQQQQIIQQ", 11, 3, 0, 0, 64 + 56, len(names), 0, 0, 1, 0)
    with open(name, "wb") as file:
        file.write(begin + bytes(TABLE_AT - len(begin)) + unwind_table)
        file.truncate(TABLE_AT + size)
    fd = os.open(name, os.O_RDONLY)
    return map_page(fd, mmap.PROT_READ | mmap.PROT_EXEC)


libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def map_page(fd, protection):
    address = libc.mmap(None, PAGE, protection, mmap.MAP_PRIVATE, fd, 0)
    if address in (None, 2**64 - 1):
        raise SystemExit("cannot map a page")
    return address


def run_code(code, ready):
    """Runs machine code in anonymous memory. Does not return."""
    memory = mmap.mmap(-1, PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ready()
    ctypes.CFUNCTYPE(None)(address)()


def spin_below(return_addresses, ready):
    """Spins in anonymous code, as if called from RETURN_ADDRESSES, innermost first."""
    words = [0, *return_addresses, 0]
    stack = mmap.mmap(-1, 1 << 20)
    top = (1 << 20) - 8 * len(words) - 64
    stack[top:top + 8 * len(words)] = struct.pack(f"<{len(words)}Q", *words)
    address = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + top
    # mov $address,%rsp; mov %rsp,%rbp; jmp to itself
    run_code(b"\x48\xbc" + struct.pack("<Q", address) + b"\x48\x89\xe5\xeb\xfe", ready)
