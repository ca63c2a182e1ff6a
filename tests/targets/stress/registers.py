# Vector registers, x87, MXCSR and most general registers are live in C: with the GIL, without it, and in a system call.
import ctypes

without_gil = ctypes.CDLL(FOLDER + "/stress.so")
with_gil = ctypes.PyDLL(FOLDER + "/stress.so")
pipe = os.pipe()
os.set_blocking(pipe[1], False)


def spin():
    expect(without_gil.stress_registers(5_000_000), 0)


def work():
    expect(with_gil.stress_registers(3_000_000), 0)
    spin()
    expect(without_gil.stress_registers_in_read(pipe[0]), 0)


def feed():
    try:
        os.write(pipe[1], b"x")
    except BlockingIOError:
        pass
    time.sleep(0.001)


torture(work, [spin], [feed])
