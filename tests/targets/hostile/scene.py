# An isolated machine (a pid namespace) with one innocent Python, without and with a hostile program.
#
#   scene.py TOOL DATA HOSTILE PYTHON MODE SECONDS INTERRUPTIONS [LATEST]
#
# HOSTILE is "none" or a program of this directory. The system's Python runs a copy of it as the user nobody; if it fakes structures of
# PYTHON, or needs Python functions in its stacks, then PYTHON runs it as root, since nobody may not reach it. MODE: trampoline
# and bpf record the machine with that engine, for SECONDS and at least until the innocent Python has used two fifths of SECONDS
# of CPU time; readers does so by BPF, with waits, tasks, the GIL and lines; status runs `status`, dump runs `dump -a --locals`; live runs
# side by side, for SECONDS, `top -a` with BPF and without it, `why` of the innocent Python, and `why` of the hostile program,
# which may be refused. The tool is also interrupted (SIGINT) INTERRUPTIONS times: a recording without a hostile program in its
# middle, and everything next to one at a random moment, at most LATEST seconds after its start; with PYINJECT_HOSTILE=full also a
# recording by stock perf next to one, near its end. In the modes trampoline and readers, each reader of readers.py reads the
# recording that is not interrupted; in the mode readers, the tool also pushes and serves profiles. Prints the measurements as one
# line of JSON.
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import readers

tool, data, hostile, python, mode, seconds, interruptions, *latest = sys.argv[1:]
seconds, interruptions = float(seconds), int(interruptions)
here = os.path.dirname(os.path.abspath(__file__))
HANG = readers.HANG
NOBODY = 65534
records = mode in ("trampoline", "bpf", "readers")
full = os.environ.get("PYINJECT_HOSTILE") == "full"
MADE_UP = ["circle", "threads", "changing", "gil", "names", "lines", "tasks", "mangled"]

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
CHAIN = readers.CHAIN


def start(arguments, user=None, directory="/", environment=None):
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, user=user, group=user, cwd=directory,
                               extra_groups=None if user is None else [], env={**os.environ, **(environment or {})})
    if not select.select([process.stdout], [], [], HANG)[0] or process.stdout.readline() != "ready\n":
        raise SystemExit(f"{arguments} did not start")
    return process


def end(process):
    process.kill()
    process.wait()


# A recording lasts until this command has read a line.
RECORDED = ["sh", "-c", "echo recording; read line"]


def command(output):
    if mode == "status":
        return [tool, "status", "--json"]
    if mode == "dump":
        return [tool, "dump", "-a", "--json", "--locals"]
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
    # cpu-clock is available everywhere, perf's default event is not on virtual machines. -B: a perf 7 of somebody else, which asks
    # for build ids, does not end it (src/perf/perf_locator.cpp).
    return [tool, "record", *(readers.ALL_MARKS if mode == "readers" else ["--engine", mode]), "-a", "-B", "-F", "499", "-e",
            "cpu-clock", "-o", output, "--", *RECORDED]


def stock_command(output):
    """perf alone, as many bytes per sample; without its thread for BPF programs, which may take a second to end."""
    call_graph = "fp" if mode == "bpf" else "dwarf,65528"
    return ["perf", "record", "--no-bpf-event", "--call-graph", call_graph, "-a", "-B", "-F", "499", "-e", "cpu-clock", "-o", output,
            "--", *RECORDED]


def fields(pid):
    """The fields of /proc/PID/stat after the name; [] if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def tree_seconds(pid):
    """The CPU time of PID, of its reaped descendants and of its current descendants."""
    while True:
        own = [int(field) for field in fields(pid)[11:15]]
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                below = sum(tree_seconds(child) for child in children.read().split())
        except (FileNotFoundError, ProcessLookupError):
            below = 0
        # Otherwise PID reaped a child in between, which would be missing or counted twice.
        if own[2:] == [int(field) for field in fields(pid)[13:15]]:
            return sum(own) / os.sysconf("SC_CLK_TCK") + below


def innocent_seconds():
    """The CPU time of the innocent Python."""
    return time.clock_gettime(~innocent.pid << 3 | 2)  # the clock id of clock_getcpuclockid(3)


class Recorded:
    """How far a recording is, as a fraction of what it has to last."""

    def __init__(self, process):
        self.out = process.stdout
        self.into = process.stdin
        self.begin = None
        self.innocent = 0  # seconds of CPU time of the innocent Python in the recording

    def begun(self):
        if self.begin is None and select.select([self.out], [], [], 0)[0]:
            if self.out.readline() == b"recording\n":
                self.begin = time.monotonic(), innocent_seconds()
        return self.begin is not None

    def fraction(self):
        if not self.begun():
            return 0
        wall, processor = self.begin
        return min((time.monotonic() - wall) / seconds, (innocent_seconds() - processor) / (0.4 * seconds))

    def stop(self):
        if not self.into.closed:
            self.innocent = innocent_seconds() - self.begin[1]
            try:
                self.into.write(b"\n")
                self.into.close()
            except BrokenPipeError:
                pass


def prefer():
    """Runs this process before others: a recording that lags behind a busy machine puts off work until after its interruption."""
    os.setsid()  # for a group of its own, if the kernel groups sessions
    for change in (lambda: os.nice(-20)), (lambda: open("/proc/self/autogroup", "w").write("-20")):
        try:
            change()
        except OSError:  # no right, or no groups
            pass


def run(output, interrupt_after=None, interrupt_at=None, of=command):
    """Interrupts the command INTERRUPT_AFTER seconds after its start, or when the fraction INTERRUPT_AT is recorded."""
    with tempfile.TemporaryFile() as messages:
        begin = time.monotonic()
        process = subprocess.Popen(of(output), stdout=subprocess.PIPE if records else subprocess.DEVNULL, stderr=messages,
                                   stdin=subprocess.PIPE if records else subprocess.DEVNULL, preexec_fn=prefer if records else None)
        watched = os.pidfd_open(process.pid)
        recorded = Recorded(process) if records else None
        since, before, due = begin, 0, interrupt_after is not None or interrupt_at is not None
        while not (ended := bool(select.select([watched], [], [], 0.01)[0])) and time.monotonic() < since + HANG:
            fraction = recorded.fraction() if recorded else 0
            late = interrupt_after is not None and time.monotonic() >= begin + interrupt_after
            if due and (late or interrupt_at is not None and fraction >= interrupt_at):
                due = False
                before = tree_seconds(process.pid)
                since = time.monotonic()
                os.kill(process.pid, signal.SIGINT)  # send_signal() would reap it if it has just ended
            elif fraction >= 1:
                recorded.stop()
        now = time.monotonic()
        os.close(watched)
        if not ended:
            os.kill(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        processor = usage.ru_utime + usage.ru_stime
        if due:  # it ended before the moment of the interruption
            since, before = now, processor
        if recorded:
            process.stdout.close()
            process.stdin.close()
        messages.seek(0)
        return {"status": process.returncode, "ended": ended, "seconds": now - since, "processor_seconds": processor - before,
                "mebibytes": usage.ru_maxrss / 1024, "innocent_seconds": recorded.innocent if recorded else 0,
                "err": messages.read().decode(errors="replace")[-4000:]}


def stacks(pid):
    """The number of samples of PID, and how many of them have the complete chain of its Python functions."""
    script = subprocess.run(["perf", "script", "-i", data, "--pid", str(pid), "--no-inline", "--no-demangle", "-F", "comm,ip,sym"],
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


def uninterrupted():
    one = run(data)
    if one["status"] == 0 and records:
        one.update(readers.shown(tool, data, innocent.pid))
        if mode == "readers":
            one["readers"] = [readers.read(tool, reader, data) for reader in readers.all_of(data)]
            one["pushed"] = readers.push(tool, data, innocent.pid)
            one["served"] = readers.serve(tool, innocent.pid)
        else:
            one.update(stacks(innocent.pid))
        if mode == "trampoline":
            one["readers"] = [readers.read(tool, reader, data) for reader in readers.without_waits(data)]
    elif one["status"] == 0 and mode == "live":
        one.update(answers())
    return one


def readable(directory):
    """A copy of the programs in FOLDER that every user may read: he may not even enter the directories above this one."""
    copy = os.path.join(directory, "programs")
    os.mkdir(copy)
    os.chmod(copy, 0o755)
    for name in os.listdir(here):
        if name.endswith(".py"):
            os.chmod(shutil.copy(os.path.join(here, name), copy), 0o644)
    return copy


enemy = None
innocent = start([python, "-c", INNOCENT])
with tempfile.TemporaryDirectory(dir="/tmp") as directory:  # TMPDIR may be closed to nobody
    if hostile != "none":
        os.chmod(directory, 0o777)
        made_up = hostile in MADE_UP
        enemy = start([python if made_up else "/usr/bin/python3", os.path.join(readable(directory), hostile + ".py")],
                      None if made_up else NOBODY, directory, {"PYTHONDONTWRITEBYTECODE": "1"})
    result = {"run": uninterrupted(), "interrupted": [], "interrupted_stock": []}
    for _ in range(interruptions if enemy and records and full else 0):
        result["interrupted_stock"].append(run(data, interrupt_at=0.9, of=stock_command))
    for _ in range(interruptions if enemy or records else 0):
        moment = {"interrupt_after": random.uniform(0.05, float(latest[0]))} if enemy else {"interrupt_at": 0.5}
        result["interrupted"].append({**moment, **run(data, **moment)})
    result["state"] = state(innocent.pid)
    if enemy:
        result["enemy_lives"] = enemy.poll() is None
        end(enemy)
end(innocent)
print(json.dumps(result))
