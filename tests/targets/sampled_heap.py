"""Keeps blocks of memory in one function and frees them in another. Argument: sampled_heap.so, whose probes tell them. Prints
"ready"; then, for each line of its input, a number of rounds, it runs these and prints the bytes that each function has kept, by
the weight of the blocks, as a line of JSON."""
import ctypes
import json
import sys

HEAP = ctypes.CDLL(sys.argv[1])
HEAP.allocate.restype = ctypes.c_size_t
HEAP.allocate.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
HEAP.release.argtypes = [ctypes.c_size_t]
SIZE = 3000
WEIGHT = 512 << 10


def keep_block():
    HEAP.allocate(SIZE, WEIGHT)


def use_block():
    HEAP.release(HEAP.allocate(SIZE, 2 * WEIGHT))


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        rounds = int(line)
        for _ in range(rounds):
            keep_block()
            use_block()
        print(json.dumps({"keep_block": rounds * WEIGHT}), flush=True)


main()
