#!/usr/bin/python3.15
"""The first and only program of the machine that scripts/vmtest starts: tries each way to record a Python, prints what it
saw and one row of a table, and switches the machine off."""

import ctypes
import json
import os
import re
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
TOOL = "/opt/perf-pyinject"
PROGRAM = """
def innermost():
    return sum(i * i for i in range(200))
def middle():
    return innermost() + innermost()
def outermost():
    while True:
        middle()
print("ready", flush=True)
outermost()
"""
# The root has no sleep(1).
SLEEP = ("python3.15", "-c", "import sys, time; time.sleep(float(sys.argv[1]))")
WANTED = re.compile(r"innermost.*middle.*outermost", re.DOTALL)


def mount(kind, where):
    os.makedirs(where, exist_ok=True)
    if libc.mount(kind.encode(), where.encode(), kind.encode(), 0, None) != 0:
        print(f"{kind} on {where}: {os.strerror(ctypes.get_errno())}")


def run(*words, seconds=240):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds)
    print(f"$ {' '.join(words)}\n{done.stdout[-3000:]}-> {done.returncode}", flush=True)
    return done


def share(file):
    """The share of the samples in FILE whose stack has all functions of PROGRAM, as stock perf prints it. Without inlined
    functions: perf 7.2 prints only the first sample if there is no addr2line."""
    done = subprocess.run(["perf", "script", "--no-inline", "-i", file, "-F", "comm,ip,sym"], stdout=subprocess.PIPE, text=True, timeout=240)
    samples = [text for text in done.stdout.split("\n\n") if text.startswith("python3")]
    whole = sum(1 for text in samples if WANTED.search(text))
    print(f"{file}: {whole} of {len(samples)}", flush=True)
    return whole, len(samples)


def verdict(done, file):
    if done.returncode != 0:
        return f"status {done.returncode}"
    whole, samples = share(file)
    return f"{whole} of {samples}"


def try_status(pid):
    found = json.loads(run(TOOL, "status", "--json", "-p", pid).stdout)
    return "ok" if pid in json.dumps(found) else "not found"


def try_dump(pid):
    return "ok" if WANTED.search(run(TOOL, "dump", "-p", pid).stdout) else "functions missing"


def try_engine(pid, engine):
    file = f"/tmp/{engine}.data"
    words = [TOOL, "record", "-p", pid, "--engine", engine, "-F", "99", "-e", "cpu-clock", "-o", file, "--", *SLEEP, "3"]
    return verdict(run(*words), file)


def try_join(pid):
    file = "/tmp/join.data"
    perf = subprocess.Popen(["perf", "record", "-q", "-F", "99", "-e", "cpu-clock", "-k", "mono", "-g", "-p", pid, "-o", file])
    deadline = time.monotonic() + 60
    while not (os.path.exists(file) and os.path.getsize(file) > 0) and time.monotonic() < deadline:
        time.sleep(0.1)
    join = subprocess.Popen([TOOL, "join", str(perf.pid)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(join.stdout.readline(), flush=True)
    time.sleep(3)
    perf.send_signal(2)
    perf.wait(60)
    messages = join.communicate(timeout=120)[0]
    print(messages, flush=True)
    if join.returncode != 0:
        return f"status {join.returncode}"
    whole, samples = share(file)
    apart = re.search(r"(\d+) from before or after", messages)
    return f"{whole} of {samples - int(apart[1] if apart else 0)}"


def try_functions(pid):
    file = "/tmp/functions.data"
    done = run(TOOL, "record", "--functions", "-p", pid, "-o", file, "--", *SLEEP, "1")
    if done.returncode != 0:
        return f"status {done.returncode}"
    rows = run(TOOL, "functions", "-i", file).stdout
    return "ok" if "innermost" in rows and "middle" in rows else "functions missing"


def main():
    for kind, where in (("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("tmpfs", "/run"),
                        ("tracefs", "/sys/kernel/tracing")):
        mount(kind, where)
    os.environ.update(PATH="/usr/bin:/usr/sbin", HOME="/run", LD_LIBRARY_PATH="/usr/lib/x86_64-linux-gnu:/opt/lib",
                      TERM="dumb")
    kernel = os.uname().release
    print(f"Linux {kernel}", flush=True)
    run(TOOL, "--version")
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as target:
        target.stdout.readline()
        pid = str(target.pid)
        cells = []
        for attempt in (try_status, try_dump, lambda pid: try_engine(pid, "trampoline"), lambda pid: try_engine(pid, "bpf"),
                        try_join, try_functions):
            try:
                cells.append(attempt(pid))
            except Exception as error:  # a row in any case
                cells.append(f"{type(error).__name__}: {error}"[:80])
            if target.poll() is not None:
                cells[-1] += f", target ended {target.returncode}"
        target.kill()
    print(f"| Linux {kernel} | {' | '.join(cells)} |", flush=True)
    numbers = [cell.split(" of ") for cell in cells if " of " in cell]
    shares = [int(whole) / int(samples) if int(samples) else 0 for whole, samples in numbers]
    if len(shares) == 3 and min(shares) >= 0.9 and cells.count("ok") == 3:
        print("passed", flush=True)


try:
    main()
finally:
    time.sleep(1)
    os.sync()
    libc.reboot(0x4321FEDC)  # LINUX_REBOOT_CMD_POWER_OFF
