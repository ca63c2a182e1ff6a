# known_stacks.py MODE: works, and tells each stack that a sample may find. MODE: tree, app, threads, deep or server.
#
# Prints `ready`, and for each function that works a line of JSON: its name, and the functions that call it, each with the
# line of the call, the innermost first. Each of these functions has one caller and one line where it calls. Ends when its
# standard input does.
import asyncio
import http.server
import json
import os
import re
import sys
import threading
import urllib.request

told = set()
lock = threading.Lock()


def tell():
    frame = sys._getframe(1)
    name = frame.f_code.co_qualname
    if name in told:
        return
    callers = []
    while frame.f_back is not None:
        frame = frame.f_back
        callers.append([frame.f_code.co_qualname, frame.f_lineno])
    with lock:
        if name not in told:
            told.add(name)
            print(json.dumps({"name": name, "callers": callers}), flush=True)


def add(count):
    total = 0
    for i in range(count):
        total += i * i
    return total


def tree_add(count):
    tell()
    return add(count)


def tree_json(count):
    tell()
    return json.loads(json.dumps({str(i): [i] * 5 for i in range(count // 20)}))


def tree_left(count):
    tell()
    tree_add(count)


def tree_right(count):
    tell()
    tree_json(count)


def tree_key(value):
    tell()
    return -value


def tree_sorted(count):
    tell()
    return sorted(range(count // 10), key=tree_key)


def tree_match(found):
    tell()
    return found.group(0).upper()


def tree_re(count):
    tell()
    return re.sub("[a-c]", tree_match, "abcdef" * (count // 100))


def tree_items(count):
    tell()
    for i in range(count // 10):
        yield i * i


def tree_sum(count):
    tell()
    return sum(tree_items(count))


class TreeObject:
    def __init__(self, count):
        tell()
        self.sum = add(count)


def tree_new(count):
    tell()
    return TreeObject(count)


def tree():
    while True:
        tree_left(2000)
        tree_right(2000)
        tree_sorted(2000)
        tree_re(2000)
        tree_sum(2000)
        tree_new(2000)


def made(prefix, count):
    """COUNT functions, each of which calls the next one; the last one works."""
    names = [f"{prefix}_{i}" for i in range(count)]
    lines = []
    for name, callee in zip(names, names[1:] + [None]):
        lines.append(f"def {name}(count):\n    tell()\n    {callee or 'add'}(count)\n")
    exec(compile("".join(lines), __file__, "exec"), globals())
    return globals()[names[0]]


def deep():
    first = made("deep", 150)
    while True:
        first(3000)


def thread_loop(first):
    while True:
        first(3000)


def threads():
    for i in range(8):
        # Each has a first function of its own, too, so that no other thread has its stack.
        exec(compile(f"def thread_{i}_main(first):\n    while True:\n        first(3000)\n", __file__, "exec"), globals())
        threading.Thread(target=globals()[f"thread_{i}_main"], args=(made(f"thread_{i}", 3),), daemon=True).start()
    threading.Event().wait()


def app():
    source = ""
    for i in range(3):
        source += (
            f"async def task_{i}_work():\n    tell()\n    add(3000)\n    await asyncio.sleep(0)\n"
            f"async def task_{i}_step():\n    tell()\n    await task_{i}_work()\n"
            f"async def task_{i}():\n    while True:\n        await task_{i}_step()\n"
        )
    exec(compile(source, __file__, "exec"), globals())

    async def run():
        await asyncio.gather(*(asyncio.create_task(globals()[f"task_{i}"](), name=f"task_{i}") for i in range(3)))

    asyncio.run(run())


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        tell()
        self.answer(str(self.work(20000)).encode())

    def work(self, count):
        tell()
        return add(count)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def server():
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{httpd.server_address[1]}/"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        opener.open(url).read()


def end_with_input():
    while os.read(0, 4096):
        pass
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
print("ready", flush=True)
{"tree": tree, "app": app, "threads": threads, "deep": deep, "server": server}[sys.argv[1]]()
