"""Uses numpy.linalg continuously. Prints "ready"; exits when its stdin is closed."""
import os
import threading

import numpy


def solve(matrix):
    return numpy.linalg.solve(matrix, matrix[0])


def decompose(matrix):
    return numpy.linalg.svd(matrix)


def eigenvalues(matrix):
    return numpy.linalg.eig(matrix)


def work(matrix):
    for _ in range(4):
        solve(matrix)
    decompose(matrix)
    eigenvalues(matrix)


def end_with_stdin():
    while os.read(0, 100):
        pass
    os._exit(0)


def main():
    threading.Thread(target=end_with_stdin, daemon=True).start()
    matrix = numpy.random.default_rng(7).random((120, 120))
    work(matrix)
    print("ready", flush=True)
    while True:
        work(matrix)


main()
