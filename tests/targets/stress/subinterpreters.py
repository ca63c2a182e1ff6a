# The main thread creates and destroys interpreters; one stays alive in its own thread.
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters


def run(code):
    interpreter = interpreters.create()
    try:
        if hasattr(interpreters, "exec"):
            expect(interpreters.exec(interpreter, code), None)
        else:
            interpreters.run_string(interpreter, code)
    finally:
        interpreters.destroy(interpreter)


def work():
    run("def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nassert fib(9) == 34")


LIVING = f"""
import mmap, os
fd = os.open({FOLDER!r} + '/page', os.O_RDWR)
page = memoryview(mmap.mmap(fd, 4096)).cast('Q')
os.close(fd)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
while not page[0]:
    assert fib(9) == 34
    page[50] += 1
page.release()
"""
living = threading.Thread(target=lambda: repeat(lambda: run(LIVING), 51))
torture(work, begin=living.start, end=living.join)
