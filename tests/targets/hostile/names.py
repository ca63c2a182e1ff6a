# 510 functions on the stack that keep changing: at each sample they are new ones, with large line tables.
import ctypes
import sys

from hostile import ready

FIRST_LINE = 68 if sys.version_info[:2] == (3, 13) else None  # offset in a PyCodeObject
if FIRST_LINE is None:
    raise SystemExit("needs 3.13")

LINES = bytes([0x80 | 11 << 3, 0]) * 12_000  # each instruction is on the next line
DEPTH = 510
sys.setrecursionlimit(10_000)
namespace = {}
functions = []
for number in range(DEPTH):
    source = f"def f{number}(functions, at):\n    return functions[at + 1](functions, at + 1)\n"
    exec(source, namespace)
    functions.append(namespace[f"f{number}"])


def change(functions, at):
    lines = [ctypes.c_int32.from_address(id(one.__code__) + FIRST_LINE) for one in functions[:-1]]
    ready()
    count = 1
    while True:
        count += 1
        for line in lines:
            line.value = count


for one in functions:
    one.__code__ = one.__code__.replace(co_linetable=LINES)
functions.append(change)
functions[0](functions, 0)
