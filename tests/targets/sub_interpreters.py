"""Functions that run in several interpreters. The name of each says which one: nearly all time is spent in the leaves. Prints
`ready` when everything has run once. argv[1]:

nested    main -> new -> old: the main thread runs Python in three interpreters, of which the innermost is older than its caller; the
          leaves take the same CPU time
parallel  eight threads, each of which runs an interpreter of its own, at the same time: `t0_leaf` below `t0_call`, and so on
pool      the same with InterpreterPoolExecutor and Interpreter.call_in_thread (3.14 and later): `p_leaf`, `c_leaf`
short     two threads make interpreters of a few milliseconds: `s00017_leaf` below `s00017_call`
hasty     four threads make interpreters that do next to nothing
deep      main and sub call themselves 600 times: `deep_main`, `deep_sub`
many      the main thread has idle states in ten interpreters, and runs an eleventh and `main_leaf` for the same CPU time
"""

import sys
import threading

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

RUN = f"import {interpreters.__name__} as interpreters" + """
def run(interpreter, code):
    if hasattr(interpreters, "exec"):
        error = interpreters.exec(interpreter, code)
        assert error is None, error
    else:
        interpreters.run_string(interpreter, code)
"""
FUNCTIONS = """
def {name}_leaf(count={count}):
    total = 0
    for i in range(count):
        total += i
def {name}_top():
    {name}_leaf()
    {then}
"""
TIMED = """
import time
def {name}_leaf(seconds=0.02):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(1000):
            pass
def {name}_top():
    {name}_leaf()
    {then}
"""
DEEP = """
def {name}(depth, then):
    if depth:
        {name}(depth - 1, then)
    else:
        then()
"""
exec(RUN)
kept = []  # 3.12 destroys an interpreter when its id object is destroyed


def create():
    kept.append(interpreters.create())
    return kept[-1]


def code_of(name, then="pass", count=600_000):
    return RUN + FUNCTIONS.format(name=name, then=then, count=count) + f"{name}_top()\n"


def timed_code_of(name, then="pass"):
    return RUN + TIMED.format(name=name, then=then) + f"{name}_top()\n"


def nested():
    old, new = create(), create()
    names = {"run": run, "new": new, "code": timed_code_of("new", f"run({int(old)}, {timed_code_of('old')!r})")}
    exec(TIMED.format(name="main", then="run(new, code)"), names)
    return names["main_top"]


def numbered_call(name, interpreter, code):
    """Runs CODE below a function that has NAME in its own name."""
    names = {"run": run, "interpreter": interpreter, "code": code}
    exec(f"def {name}_call():\n    run(interpreter, code)\n", names)
    names[f"{name}_call"]()


def in_turns(first, work):
    """Calls WORK again and again; `first` is told after the first time."""
    while True:
        work()
        first.release()


def start(works):
    first = threading.Semaphore(0)
    for work in works:
        threading.Thread(target=in_turns, args=(first, work), daemon=True).start()
    for _ in works:
        first.acquire()


def parallel():
    made = [create() for _ in range(8)]
    start([lambda n=n, one=one: numbered_call(f"t{n}", one, code_of(f"t{n}", count=300_000)) for n, one in enumerate(made)])


def pool():
    import concurrent.futures
    import concurrent.interpreters

    executor = concurrent.futures.InterpreterPoolExecutor(2)
    code = code_of("p")
    start([lambda: executor.submit(exec, code, {"__name__": "p"}).result()] * 2)
    one = concurrent.interpreters.create()
    one.exec(RUN + FUNCTIONS.format(name="c", then="pass", count=200_000))
    start([lambda: one.call_in_thread(eval, "exec('import __main__; __main__.c_top()')").join()])


def short(threads=2, count=200_000):
    last = 0
    lock = threading.Lock()

    def work():
        nonlocal last
        with lock:
            last += 1
            name = f"s{last:05}"
        interpreter = interpreters.create()
        numbered_call(name, interpreter, code_of(name, count=count))
        interpreters.destroy(interpreter)

    start([work] * threads)


def hasty():
    short(threads=4, count=2_000)


def deep():
    sub = DEEP.format(name="deep_sub") + FUNCTIONS.format(name="sub", then="pass", count=1_000_000) + "deep_sub(600, sub_top)\n"
    one = create()
    names = {"run": run, "one": one, "sub": sub}
    exec(DEEP.format(name="deep_main") + "def deep_top(): run(one, sub)\n", names)
    return lambda: names["deep_main"](600, names["deep_top"])


def many():
    for _ in range(10):
        run(create(), "pass")
    one = create()
    names = {"run": run, "one": one, "code": timed_code_of("sub")}
    exec(TIMED.format(name="main", then="run(one, code)"), names)
    return names["main_top"]


def main_loop(work):
    work()
    print("ready", flush=True)
    while True:
        work()


mode = sys.argv[1]
if mode in ("nested", "deep", "many"):
    main_loop(globals()[mode]())
else:
    globals()[mode]()
    print("ready", flush=True)
    threading.Event().wait()
