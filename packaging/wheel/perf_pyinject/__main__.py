"""python -m perf_pyinject VERB ...: the same as perf-pyinject VERB ..."""
import os
import sys

from perf_pyinject import find_program


def main():
    program = find_program()
    if not os.access(program, os.X_OK):  # unpacked without its mode
        os.chmod(program, os.stat(program).st_mode | 0o111)
    os.execv(program, [program, *sys.argv[1:]])


main()
