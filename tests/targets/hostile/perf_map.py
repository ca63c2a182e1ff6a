# A perf map of 64 MB, written by a process whose stacks do not look like a Python's.
import ctypes
import mmap
import os

from hostile import ready

CODE = b"\xeb\xfe"
memory = mmap.mmap(-1, 1 << 24, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory.write(CODE)
name = f"/tmp/perf-{os.getpid()}.map"
with open(name, "w") as file:
    file.writelines(f"{begin + 16 * number:x} 10 {number:<45}\n" for number in range(1_000_000))
ready()
ctypes.CFUNCTYPE(None)(begin)()
