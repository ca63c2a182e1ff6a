"""The commands of the README and of the first pages of docs/ work: each is run on real processes, and succeeds.

SUBSTITUTIONS make them short and give them a process; NOT_RUN has those that are not run, each with the reason.
"""
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from pythons import PATIENCE, REQUIRED, SOURCE, TOOL, Target, python  # noqa: E402

# A master with a worker: both compute, wait for locks and the GIL, write, and touch memory. Prints the worker's pid.
PROGRAM = """
import collections, mmap, os, socket, tempfile, threading, time
worker = os.fork()
if worker:
    print("ready", worker, flush=True)
lock = threading.Lock()
kept = collections.deque(maxlen=20000)  # for much longer than a recording
def computes():
    while True:
        with lock:
            mmap.mmap(-1, 1 << 16).write(bytes(1 << 16))
            sum(i * i for i in range(1000))
def does_io():
    here, there = socket.socketpair()
    with tempfile.TemporaryFile() as file:
        while True:
            file.write(b"x" * 8192)
            file.seek(0)
            here.send(b"x")
            there.recv(1)
            kept.append(mmap.mmap(-1, 4096))
            time.sleep(0.001)
for function in (computes, computes, does_io):
    threading.Thread(target=function, daemon=True).start()
if worker:
    time.sleep(600)
while os.getppid() == %(master)s:
    time.sleep(0.1)
"""
PROGRAM = PROGRAM.replace("%(master)s", "master").replace("worker = ", "master = os.getpid()\nworker = ")

# Pattern, replacement: what is typed instead. The names in braces are set for each page.
SUBSTITUTIONS = (
    (r"^\$ ", ""),
    # Processes.
    (r"\bPERF_PID\b", "{perf}"),
    (r"\b(PID|4711|12684)\b", "{pid}"),
    (r"\b4715\b", "{worker}"),
    (r"/path/to/python3\b", "{python}"),
    (r"\bpython3 -m pytest\b", "{python} -c 'sum(range(10**7))'"),
    # Times.
    (r"\bsleep (5|10|30|60)\b", "sleep 0.5"),
    (r"(?<= )-d 10\b", "-d 1"),
    (r"\bperf-pyinject why\b", "perf-pyinject why -d 1"),
    (r"\b30s/5m\b", "500ms/1s"),
    # A display needs a terminal.
    (r"\bperf-pyinject top\b", "perf-pyinject top --once -d 1"),
    # Files: a recording replaces the one of the command before.
    (r"\bold\.data\b", "perf.data.old"),
    (r"\bnew\.data\b", "perf.data"),
    (r"/var/tmp/web\.data\.20261125\d+", "perf.data"),
    (r"/var/tmp/web\.data\.20261124\d+", "perf.data.old"),
    (r"/var/tmp/", ""),
)

# Commands that go on until Ctrl-C, and what they print when they work. Their status is that of an interrupted command.
LASTING = (
    (r" --repeat ", "recorded "),
    (r"^perf-pyinject serve$", "serving "),
)

BUILDS = "builds or installs; scripts/bare does that"
NOT_RUN = {
    "README.md": {
        "scripts/demo": BUILDS,
        "scripts/test": BUILDS,
        "scripts/setup build && cmake --preset release && cmake --build --preset release": BUILDS,
        "cmake --install build/release --prefix /usr/local": BUILDS,
        "perf-pyinject dump --core FILE": "needs a core file: dump_core_test makes them",
        "perf-pyinject record --functions -p PID -- sleep 1": "needs a 3.15 with probes: schemas.calls",
        "perf-pyinject functions": "needs a 3.15 with probes: schemas.calls",
    },
    "docs/getting-started.md": {
        "scripts/setup build && cmake --preset release && cmake --build --preset release": BUILDS,
        "cmake --install build/release --prefix /usr/local": BUILDS,
    },
    "docs/on-call.md": {
        "perf-pyinject dump --core FILE": "needs a core file: dump_core_test makes them",
    },
}

COMMAND = re.compile(r"^(?:\$ )?(?:perf-pyinject|perf|scripts/\S+|cmake|ctest)(?: |$)")


def blocks(text):
    """The lines of code and the paragraphs of TEXT: pairs of a kind, "code" or "prose", and text."""
    fenced = False
    code = prose = ""
    for line in text.splitlines():
        fence = line.startswith("```")
        fenced = fenced != fence
        if not fence and (fenced or line.startswith("    ")):
            code += line.strip()
            if code.endswith("\\"):
                code = code[:-1]
                continue
            yield "code", code
            code = ""
        elif line and not line.startswith("|"):
            prose += line + "\n"
        else:
            yield "prose", prose + line
            prose = ""
    yield "prose", prose


def commands(text):
    """The commands of TEXT in their order: lines of code that begin with a command, and spans that begin with the tool."""
    found = []
    for kind, block in blocks(text):
        if kind == "code" and COMMAND.match(block):
            found.append(re.sub(r" +# .*", "", block))
        elif kind == "prose":
            spans = (re.sub(r"\s+", " ", span) for span in re.findall(r"`([^`]+)`", block))
            found += [span for span in spans if re.match(r"(perf-pyinject|perf pyinject)( |$)", span)]
    # With "..." or VERB it is a synopsis.
    return [one for one in dict.fromkeys(found) if "..." not in one and "VERB" not in one]


class Commands(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self._directory = directory.name
        self._environment = {**os.environ, "DEBUGINFOD_URLS": "", "PAGER": "cat",
                             "PATH": f"{os.path.dirname(os.path.abspath(TOOL))}:{os.environ['PATH']}"}

    def start(self, command, **options):
        return subprocess.Popen(command, cwd=self._directory, env=self._environment, stdin=subprocess.DEVNULL, **options)

    def substituted(self, command, names):
        for pattern, replacement in SUBSTITUTIONS:
            command = re.sub(pattern, replacement.format(**names), command)
        return command

    # Runs COMMAND; returns its status, and what it has printed.
    def run_to_end(self, command):
        process = self.start(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            printed, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return process.returncode, printed.decode(errors="replace")

    # The same; Ctrl-C ends INTERRUPTED, None: the command itself, once the command has printed SIGN.
    def run_and_interrupt(self, interrupted, sign, command):
        process = self.start(shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        printed = b""
        deadline = time.monotonic() + PATIENCE
        with process.stdout as output:
            while sign.encode() not in printed and select.select([output], [], [], max(deadline - time.monotonic(), 0))[0]:
                piece = os.read(output.fileno(), 4096)
                if not piece:
                    break
                printed += piece
            (interrupted or process).send_signal(signal.SIGINT)
            printed += output.read()
        return process.wait(PATIENCE), printed.decode(errors="replace")

    # For a command that Ctrl-C ends.
    def run_until(self, sign, command):
        status, printed = self.run_and_interrupt(None, sign, command)
        interrupted = sign in printed and status in (-signal.SIGINT, 128 + signal.SIGINT)
        return 0 if interrupted else status or 1, printed

    # For a command that joins PERF and ends with it.
    def run_beside(self, perf, command):
        return self.run_and_interrupt(perf, "joined perf record", command)

    def check(self, page):
        with open(f"{SOURCE}/{page}", encoding="utf-8") as file:
            found = commands(file.read())
        self.assertGreater(len(found), 4, "commands are no longer found")
        self.assertEqual(sorted(set(NOT_RUN[page]) - set(found)), [], f"no longer in {page}")
        interpreter = python(12)
        if interpreter is None:
            (self.fail if REQUIRED else self.skipTest)("needs CPython 3.12 or later")
        # demo takes the one on PATH, which has none on Debian 12.
        with open(f"{self._directory}/python3", "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {shlex.quote(interpreter)} "$@"\n')
        os.chmod(file.name, 0o755)
        self._environment["PATH"] = f"{self._directory}:{self._environment['PATH']}"
        with Target(interpreter, PROGRAM) as target:
            names = {"pid": target.pid, "worker": target.answer, "python": interpreter, "perf": ""}
            for command in (one for one in found if one not in NOT_RUN[page]):
                with self.subTest(command=command):
                    self.check_one(command, names)

    def check_one(self, command, names):
        if "PERF_PID" in command:
            perf = self.start(["perf", "record", "-q", "-g", "-k", "mono", "-o", "joined.data", "-p", names["pid"]])
            names = {**names, "perf": str(perf.pid)}
            self.addCleanup(perf.wait, PATIENCE)
            self.addCleanup(perf.send_signal, signal.SIGINT)
        typed = self.substituted(command, names)
        sign = next((sign for pattern, sign in LASTING if re.search(pattern, typed)), None)
        begin = time.monotonic()
        if "PERF_PID" in command:
            status, printed = self.run_beside(perf, typed)
        else:
            status, printed = self.run_until(sign, typed) if sign else self.run_to_end(typed)
        print(f"{time.monotonic() - begin:5.1f} s  {typed}", flush=True)
        if status == 125 and re.search(r"\(no_[a-z]+\)|tracefs is not mounted", printed):
            self.skipTest(printed)  # rights, BTF
        self.assertEqual(status, 0, f"{typed}:\n{printed}")

    def test_readme(self):
        self.check("README.md")

    def test_getting_started(self):
        self.check("docs/getting-started.md")

    def test_on_call(self):
        self.check("docs/on-call.md")

    def test_commands_are_found(self):
        text = ("Use `perf-pyinject status\n-p PID` or `perf-pyinject VERB --help`.\n\n| `perf-pyinject` | `--lines` |\n\n"
                "    $ perf-pyinject why \\\n      -p 1  # why\n    perf-pyinject: attached\n\n```\nperf report | cat\n```\n")
        self.assertEqual(commands(text), ["perf-pyinject status -p PID", "perf-pyinject", "$ perf-pyinject why -p 1",
                                          "perf report | cat"])


if __name__ == "__main__":
    unittest.main()
