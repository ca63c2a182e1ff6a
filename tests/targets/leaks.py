"""Leaks memory in some lines and uses more of it for a moment in others: by mmap, by brk, and for small objects. Prints "ready";
then, for each line of its input, a number of rounds, it runs these and prints the bytes that each function has asked for and
kept, as a line of JSON."""
import json
import sys

KEPT = []
BIG = 40 << 20  # above the 32 MiB up to which glibc may take memory from its heap
SMALL = 40_000
MEDIUM = 2_000


def leak_big():
    KEPT.append(bytearray(BIG))


def use_big():
    bytearray(2 * BIG)


def leak_small():
    KEPT.append([{} for _ in range(SMALL)])


# Less than what leaks: the memory that this frees is what the leak takes next, and a line that uses more for a moment than the
# other one leaks would take all growth.
def use_small():
    [{} for _ in range(SMALL // 20)]


def leak_medium():
    KEPT.append([bytes(1000) for _ in range(MEDIUM)])


def use_medium():
    [bytes(1000) for _ in range(MEDIUM // 20)]


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        rounds = int(line)
        for _ in range(rounds):
            use_big()
            leak_big()
            use_small()
            leak_small()
            use_medium()
            leak_medium()
        size = {"leak_big": BIG, "leak_small": SMALL * (64 + 8), "leak_medium": MEDIUM * (1033 + 8)}
        print(json.dumps({name: rounds * each for name, each in size.items()}), flush=True)


main()
