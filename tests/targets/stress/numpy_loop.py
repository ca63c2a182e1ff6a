import numpy

numbers = numpy.arange(4096, dtype=numpy.float64)
matrix = numpy.arange(64 * 64, dtype=numpy.int64).reshape(64, 64) % 17
identity = numpy.eye(64, dtype=numpy.float64)
squares = float(4095 * 4096 * 8191 // 6)
trace = sum(int(matrix[i, j]) * int(matrix[j, i]) for i in range(64) for j in range(64))


def work():
    expect(float((numbers * numbers).sum()), squares)
    expect(float(numpy.sqrt(numbers * numbers)[77]), 77.0)
    expect(int(numpy.trace(matrix @ matrix)), trace)
    expect(bool((matrix.astype(numpy.float64) @ identity == matrix).all()), True)
    expect(int(numpy.sort(numbers[::-1])[10]), 10)


torture(work, [work, work])
