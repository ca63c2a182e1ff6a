# A machine of its own (a pid namespace) with one innocent Python and one hostile program.
#
#   scene.py TOOL DATA HOSTILE PYTHON MODE SECONDS INTERRUPTIONS
#
# HOSTILE is a program of this directory: run as nobody by the system's Python, or by PYTHON (where nobody may not get)
# if it makes up structures of that one. MODE: trampoline and bpf record the machine for
# SECONDS, with that engine; status looks at it. Before that the same without the hostile program. Then the tool is
# interrupted (SIGINT) that many times, each time at a random moment. Prints what was measured as one line of JSON.
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time

tool, data, hostile, python, mode, seconds, interruptions = sys.argv[1:]
seconds, interruptions = float(seconds), int(interruptions)
here = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 60
MADE_UP = ["circle", "threads", "changing", "gil", "names", "lines", "tasks"]

INNOCENT = """
import time
def work(until):
    while time.process_time() < until:
        pass
def handle():
    work(time.process_time() + 0.002)
def serve():
    while True:
        handle()
def main():
    print("ready", flush=True)
    serve()
main()
"""
CHAIN = ["<module>", "main", "serve", "handle", "work"]


def start(arguments, user=None, folder="/", environment=None):
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, user=user, group=user, cwd=folder,
                               extra_groups=None if user is None else [], env={**os.environ, **(environment or {})})
    if not select.select([process.stdout], [], [], PATIENCE)[0] or process.stdout.readline() != "ready\n":
        raise SystemExit(f"{arguments} did not start")
    return process


def end(process):
    process.kill()
    process.wait()


def command(output):
    if mode == "status":
        return [tool, "status", "--json"]
    # The processor's clock is everywhere; by default it would be perf's, which virtual machines lack.
    return [tool, "record", "--engine", mode, "-a", "-F", "499", "-e", "cpu-clock", "-o", output, "--", "sleep", str(seconds)]


def processor_seconds(pid):
    """Of PID, of the children that it has reaped and of those that it has now."""
    def ticks(one, count):
        with open(f"/proc/{one}/stat") as stat:
            return sum(int(field) for field in stat.read().rpartition(")")[2].split()[11:11 + count])

    with open(f"/proc/{pid}/task/{pid}/children") as children:
        now = children.read().split()
    total = ticks(pid, 4)
    for child in now:
        try:
            total += ticks(child, 2)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / os.sysconf("SC_CLK_TCK")


def run(output, interrupt_after=None):
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as messages:
        begin = time.monotonic()
        process = subprocess.Popen(command(output), stdout=said, stderr=messages, stdin=subprocess.DEVNULL)
        since = begin
        before = 0
        if interrupt_after is not None:
            ended = select.select([os.pidfd_open(process.pid)], [], [], interrupt_after)[0]
            since = time.monotonic()
            before = processor_seconds(process.pid)
            if not ended:
                process.send_signal(signal.SIGINT)
        watched = os.pidfd_open(process.pid)
        in_time = bool(select.select([watched], [], [], PATIENCE)[0])
        took = time.monotonic() - since
        os.close(watched)
        if not in_time:
            process.kill()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        messages.seek(0)
        return {"status": process.returncode, "in_time": in_time, "seconds": took, "mebibytes": usage.ru_maxrss / 1024,
                "processor_seconds": usage.ru_utime + usage.ru_stime - before, "out": said.read()[-200_000:], "err": messages.read()[-4000:]}


def stacks(pid):
    """How many samples of PID there are, and how many have the whole chain of its Python functions."""
    script = subprocess.run(["perf", "script", "-i", data, "--pid", str(pid), "--no-inline", "-F", "comm,ip,sym"],
                            capture_output=True, text=True)
    samples = whole = 0
    for sample in script.stdout.split("\n\n"):
        lines = sample.strip().splitlines()
        if len(lines) < 2:
            continue
        names = [line.split("py::", 1)[1].split(":")[0].split("+0x")[0] for line in reversed(lines[1:]) if "py::" in line]
        samples += 1
        # The innermost functions: at that moment they may not have been entered.
        whole += len(names) >= 3 and names == CHAIN[:len(names)]
    return {"samples": samples, "whole": whole}


def state(pid):
    told = subprocess.run([tool, "status", "--json", "-p", str(pid)], capture_output=True, text=True)
    return json.loads(told.stdout)["processes"][0]["trampoline"]


result = {"interrupted": [], "interrupted_alone": []}
innocent = start([python, "-c", INNOCENT])
result["alone"] = run(data)
if mode != "status":
    result["alone"].update(stacks(innocent.pid))
for _ in range(2 if interruptions else 0):
    one = run(data, interrupt_after=seconds / 2 + 0.5)
    result["interrupted_alone"].append({"seconds": one["seconds"], "processor_seconds": one["processor_seconds"]})
with tempfile.TemporaryDirectory() as folder:
    os.chmod(folder, 0o777)
    os.chown(folder, 65534, 65534)
    made_up = hostile in MADE_UP
    enemy = start([python if made_up else "/usr/bin/python3", os.path.join(here, hostile + ".py")],
                  None if made_up else 65534, folder, {"PYTHONDONTWRITEBYTECODE": "1"})
    result["beside"] = run(data)
    if mode != "status":
        result["beside"].update(stacks(innocent.pid))
    for _ in range(interruptions):
        after = random.uniform(0.05, result["alone"]["seconds"])
        one = run(data, interrupt_after=after)
        result["interrupted"].append({"after": after, "seconds": one["seconds"], "processor_seconds": one["processor_seconds"],
                                      "status": one["status"], "err": one["err"][-600:]})
    result["state"] = state(innocent.pid)
    result["enemy_lives"] = enemy.poll() is None
    end(enemy)
end(innocent)
print(json.dumps(result))
