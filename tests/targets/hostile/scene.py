# An isolated machine (a pid namespace) with one innocent Python and one hostile program.
#
#   scene.py TOOL DATA HOSTILE PYTHON MODE SECONDS INTERRUPTIONS
#
# HOSTILE is a program of this directory. The system's Python runs a copy of it as the user nobody; if it fakes structures of
# PYTHON, then PYTHON runs it as root, since nobody may not reach it. MODE: trampoline and bpf record the machine for SECONDS with
# that engine; status runs `status`, dump runs `dump -a`; live runs side by side, for SECONDS, `top -a` with BPF and without
# it, `why` of the innocent Python, and `why` of the hostile program, which may be refused. First all this runs without the
# hostile program (the results are reused for an hour), then with it. The tool is interrupted (SIGINT) INTERRUPTIONS times
# without the hostile program, and as often with it, each time at a random moment; stock perf, too. Prints the measurements as
# one line of JSON.
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

tool, data, hostile, python, mode, seconds, interruptions = sys.argv[1:]
seconds, interruptions = float(seconds), int(interruptions)
here = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 60
records = mode in ("trampoline", "bpf")
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
    if mode == "dump":
        return [tool, "dump", "-a", "--json"]
    if mode == "live":
        long = str(max(1, round(seconds)))
        top = f"{tool} top --once --json -a -d {long}"
        script = f"""
            {top} > {output}.top & top=$!
            setpriv --bounding-set=-bpf,-perfmon,-sys_admin {top} > {output}.reading 2> {output}.err & reading=$!
            {tool} why --json -p {innocent.pid} -d {long} > {output}.why & why=$!
            {tool} why -p {enemy.pid if enemy else innocent.pid} -d {long} > {output}.err 2>&1
            [ $? -le 125 ] && wait $top && wait $reading && wait $why"""
        return ["sh", "-c", script]
    # cpu-clock is available everywhere, perf's default event is not on virtual machines.
    return [tool, "record", "--engine", mode, "-a", "-F", "499", "-e", "cpu-clock", "-o", output, "--", "sleep", str(seconds)]


def stock_command(output):
    """perf alone, as many bytes per sample; without its thread for BPF programs, which may take a second to end."""
    call_graph = "fp" if mode == "bpf" else "dwarf,65528"
    return ["perf", "record", "--no-bpf-event", "--call-graph", call_graph, "-a", "-F", "499", "-e", "cpu-clock", "-o", output, "--",
            "sleep", str(seconds)]


def processor_seconds(pid):
    """The CPU time of PID, of its reaped children and of its current children."""
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


def run(output, interrupt_after=None, of=command):
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as messages:
        begin = time.monotonic()
        process = subprocess.Popen(of(output), stdout=said, stderr=messages, stdin=subprocess.DEVNULL)
        watched = os.pidfd_open(process.pid)
        since = begin
        before = 0
        if interrupt_after is not None:
            ended = select.select([watched], [], [], interrupt_after)[0]
            since = time.monotonic()
            before = processor_seconds(process.pid)
            if not ended:
                os.kill(process.pid, signal.SIGINT)  # send_signal() would reap it if it has just ended
        in_time = bool(select.select([watched], [], [], PATIENCE)[0])
        took = time.monotonic() - since
        os.close(watched)
        if not in_time:
            os.kill(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        messages.seek(0)
        return {"status": process.returncode, "in_time": in_time, "seconds": took, "mebibytes": usage.ru_maxrss / 1024,
                "processor_seconds": usage.ru_utime + usage.ru_stime - before, "out": said.read()[-200_000:], "err": messages.read()[-4000:]}


def stacks(pid):
    """The number of samples of PID, and how many of them have the complete chain of its Python functions."""
    script = subprocess.run(["perf", "script", "-i", data, "--pid", str(pid), "--no-inline", "-F", "comm,ip,sym"],
                            capture_output=True, text=True)
    samples = whole = 0
    for sample in script.stdout.split("\n\n"):
        lines = sample.strip().splitlines()
        if len(lines) < 2:
            continue
        names = [line.split("py::", 1)[1].split(":")[0].split("+0x")[0] for line in reversed(lines[1:]) if "py::" in line]
        samples += 1
        # The innermost functions may be missing: they may not have been entered at that moment.
        whole += len(names) >= 3 and names == CHAIN[:len(names)]
    return {"samples": samples, "whole": whole}


def answers():
    """For each command of the mode live: whether it names the innocent Python's function."""
    def functions(file):
        with open(f"{data}.{file}") as written:
            return [row["name"] for row in json.load(written)["functions"]]

    with open(f"{data}.why") as written:
        lines = [top["function"] for group in json.load(written)["groups"] for use in group["uses"] for top in use["top"]]
    return {"top": "work" in functions("top"), "reading": "work" in functions("reading"), "why": "work" in lines}


def state(pid):
    told = subprocess.run([tool, "status", "--json", "-p", str(pid)], capture_output=True, text=True)
    return json.loads(told.stdout)["processes"][0]["trampoline"]


def without_the_hostile_program():
    """The same for every hostile program, and so kept next to the tool for an hour, or until the tool is rebuilt."""
    kept = os.path.join(os.path.dirname(tool), "hostile-baselines.json")
    key = json.dumps([mode, python, seconds, interruptions, os.stat(tool).st_mtime_ns])
    try:
        with open(kept) as file:
            known = json.load(file)
    except FileNotFoundError:
        known = {}
    if key in known and 0 <= time.time() - known[key]["at"] < 3600:
        return known[key]["measured"]
    measured = {"alone": run(data), "interrupted_alone": []}
    if records:
        measured["alone"].update(stacks(innocent.pid))
    elif mode == "live":
        measured["alone"].update(answers())
    for _ in range(interruptions):
        one = run(data, interrupt_after=seconds / 2 + 0.5)
        measured["interrupted_alone"].append({"seconds": one["seconds"], "processor_seconds": one["processor_seconds"]})
    if measured["alone"]["status"] != 0:
        return measured
    known[key] = {"at": time.time(), "measured": measured}
    with open(kept + ".new", "w") as file:
        json.dump(known, file)
    os.rename(kept + ".new", kept)
    return measured


def readable(folder):
    """A copy of the programs in FOLDER that every user may read: he may not even enter the directories above this one."""
    copy = os.path.join(folder, "programs")
    os.mkdir(copy)
    os.chmod(copy, 0o755)
    for name in os.listdir(here):
        if name.endswith(".py"):
            os.chmod(shutil.copy(os.path.join(here, name), copy), 0o644)
    return copy


enemy = None
innocent = start([python, "-c", INNOCENT])
result = {"interrupted": [], "interrupted_stock": [], **without_the_hostile_program()}
with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # TMPDIR may be closed to nobody
    os.chmod(folder, 0o777)
    os.chown(folder, 65534, 65534)
    made_up = hostile in MADE_UP
    enemy = start([python if made_up else "/usr/bin/python3", os.path.join(readable(folder), hostile + ".py")],
                  None if made_up else 65534, folder, {"PYTHONDONTWRITEBYTECODE": "1"})
    result["beside"] = run(data)
    if records:
        result["beside"].update(stacks(innocent.pid))
    elif mode == "live":
        result["beside"].update(answers())
    for _ in range(interruptions if records else 0):
        result["interrupted_stock"].append(run(data, interrupt_after=0.9 * seconds, of=stock_command)["seconds"])
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
