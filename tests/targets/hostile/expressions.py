# 2048 return addresses into a function for which computing the caller's registers takes 7500 steps.
from hostile import ready
from unwinding import map_library, spin_below, table

NOTHING = b"\x96" * 499  # DW_OP_nop
program = b"".join(b"\x16" + bytes([number]) + b"\xf3\x03" + NOTHING for number in range(16) if number != 7)
library = map_library("slow.so", table(program))
spin_below([library + 0x10 + number % 0x800 for number in range(2040)], ready)
