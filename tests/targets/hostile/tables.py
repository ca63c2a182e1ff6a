# A stack through 40 sparse files, each with an unwind table of 64 MiB.
import struct

from hostile import ready
from unwinding import map_library, spin_below, table

SIZE = 64 << 20
begin = table(b"")[:-4]
whole = begin + struct.pack("<I", SIZE - len(begin) - 4)
libraries = [map_library(f"table{number}.so", whole, SIZE) for number in range(40)]
spin_below([libraries[number % 40] + 0x10 for number in range(80)], ready)
