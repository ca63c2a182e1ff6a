"""Deep stacks of C and Python functions in turn. Arguments: depth of the recursion or "flat", "threads" for a second thread,
"again" to map each file once more, below all others."""
import functools
import hashlib
import json
import mmap
import re
import sys
import threading

try:
    import ctypes
except ImportError:
    ctypes = None
try:
    import numpy
except ImportError:
    numpy = None


def leaf(n):
    total = 0
    for i in range(60):
        total += i * n
    return hashlib.sha256(str(total).encode() * 20).hexdigest()


def deep(depth, n):
    return leaf(n) if depth == 0 else deep(depth - 1, n)


def key(n):
    return deep(n % 3, n)


class Node:
    def __init__(self, n):
        self.n = n

    def __lt__(self, other):
        return by_sort(self.n) > by_sort(other.n)


def by_sort(n):
    return sorted(range(4), key=key)[0] + n


def default(node):
    return {'key': leaf(node.n), 'sorted': sorted([Node(1), Node(2)])[0].n}


def by_json():
    return json.dumps([Node(i) for i in range(3)], default=default)


def by_regex():
    return re.sub(r'\d', lambda match: by_json()[:3], 'a1b2')


def by_qsort():
    """libffi calls back, from a function of the C library."""
    if ctypes is None:
        return by_regex()
    numbers = (ctypes.c_int * 3)(3, 1, 2)
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    ctypes.CDLL(None).qsort(numbers, 3, 4, compare(lambda a, b: (by_regex(), a[0] - b[0])[1]))
    return list(numbers)


def by_numpy():
    if numpy is None:
        return by_qsort()
    return numpy.frompyfunc(lambda n: (by_qsort(), n)[1], 1, 1)(numpy.arange(2))


def by_map():
    return list(map(lambda n: functools.reduce(lambda a, b: (by_numpy(), a)[1], range(3)), range(2)))


def recur(depth):
    if depth == 0:
        return by_map()
    return max([depth], key=lambda n: (recur(depth - 1), n)[1])


def run():
    while True:
        leaf(1) if sys.argv[1] == 'flat' else recur(int(sys.argv[1]))


def map_again():
    """As libffi maps its trampolines: one page of the code."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    with open('/proc/self/maps') as maps:
        code = [line.split() for line in maps if ' r-xp ' in line and ' /' in line]
    for number, fields in enumerate(code):
        with open(fields[5]) as file:
            address = libc.mmap(0x100000 + number * 0x2000, 4096, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE,
                                file.fileno(), int(fields[2], 16))
            assert address is not None and address < int(fields[0].split('-')[0], 16)


if 'again' in sys.argv:
    map_again()
if 'threads' in sys.argv:
    threading.Thread(target=run, daemon=True).start()
print('ready', flush=True)
run()
