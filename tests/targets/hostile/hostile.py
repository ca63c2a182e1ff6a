"""Shared by the hostile programs of this directory."""
import ctypes
import mmap
import os
import struct
import sys
import time

PAGE = 4096


def ready():
    """The scene waits for this line."""
    print("ready", flush=True)


def wait_forever():
    while True:
        time.sleep(3600)


def elf(sections, names, symbols=b"", strings=b""):
    """A library for x86-64 with one executable segment. SECTIONS: more headers; NAMES: their string table."""
    header = 64 + 56
    table_at = header
    strings_at = table_at + len(symbols)
    names_at = strings_at + len(strings)
    headers_at = (names_at + len(names) + 7) // 8 * 8
    headers = [
        struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        struct.pack("<IIQQQQIIQQ", 0, 11, 2, 0, table_at, len(symbols), 2, 1, 8, 24),  # SHT_DYNSYM
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, strings_at, len(strings), 0, 0, 1, 0),  # SHT_STRTAB
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, names_at, len(names), 0, 0, 1, 0),
    ] + sections
    begin = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, headers_at, 0, 64, 56, 1, 64, len(headers), 3)
    begin += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, PAGE, PAGE, PAGE)
    body = begin + symbols + strings + names
    return body + bytes(headers_at - len(body)) + b"".join(headers)


class Mapped:
    """A new file in the current directory, mapped executable."""

    def __init__(self, name, content):
        self.fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(self.fd, content) if len(content) < 1 << 20 else self._write(content)
        self.map()

    def _write(self, content):
        view = memoryview(content)
        while view:
            view = view[os.write(self.fd, view):]

    def map(self):
        # Python's own mmap would keep a descriptor for each.
        library = ctypes.CDLL(None)
        library.mmap.restype = ctypes.c_void_p
        private_code = (mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE)
        self.address = library.mmap(None, ctypes.c_size_t(PAGE), *private_code, self.fd, ctypes.c_long(0))
        if self.address == 2**64 - 1:
            raise OSError("mmap")

    def unmap(self):
        if ctypes.CDLL(None).munmap(ctypes.c_void_p(self.address), ctypes.c_size_t(PAGE)) != 0:
            raise OSError("munmap")

    def renew(self):
        """Makes it look like another file to a cache of files, and maps it again."""
        os.utime(self.fd)
        self.map()


# The words of _Py_DebugOffsets used here, by minor version (pycore_debug_offsets.h).
class Offsets:
    def __init__(self):
        # 3.13 and 3.14 start alike: cookie, version, free_threaded; runtime_state; interpreter_state; thread_state.
        if sys.version_info[:2] not in ((3, 13), (3, 14), (3, 15)):
            raise SystemExit("needs 3.13 or later")
        library = ctypes.CDLL(None)
        self.runtime = ctypes.addressof(ctypes.c_char.in_dll(library, "_PyRuntime"))
        words = (ctypes.c_uint64 * 40).from_address(self.runtime)
        self.interpreters_head = words[5]
        self.next_interpreter = words[8]
        self.threads_head = words[9]
        if sys.version_info[:2] == (3, 13):
            self.next_thread, self.thread_interpreter, self.thread_id, self.native_id = words[21], words[22], words[24], words[25]
        else:
            raise SystemExit("the rest is known of 3.13 only")


def word(address):
    return ctypes.c_uint64.from_address(address)


def interpreter():
    get = ctypes.pythonapi.PyInterpreterState_Get
    get.restype = ctypes.c_void_p
    return get()


STATE = 1024  # bytes of a fake PyThreadState


def fake_threads(offsets, count, native_ids):
    """Inserts COUNT thread states before the real ones. Returns the memory, which must stay allocated."""
    memory = mmap.mmap(-1, count * STATE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    mine = interpreter()
    head = mine + offsets.threads_head
    # The other fields are zero: when the interpreter walks the list, it finds nothing to do.
    for number in range(count):
        state = base + number * STATE
        word(state + offsets.thread_interpreter).value = mine
        word(state + offsets.thread_id).value = base
        word(state + offsets.native_id).value = native_ids[number % len(native_ids)]
        word(state + offsets.next_thread).value = state + STATE
    word(base + (count - 1) * STATE + offsets.next_thread).value = word(head).value
    word(head).value = base
    return memory, base
