# Three programs on an isolated machine (a pid namespace): the session of the first is killed together with its guard,
# that of the second is alive, and `activate` has switched on the third.
#
#   abandoned.py TOOL DATA INTERPRETER
#
# Prints the reports on the sessions before and after `deactivate --abandoned` as one line of JSON.
import json
import os
import select
import signal
import subprocess
import sys

tool, data, interpreter = sys.argv[1:]
PATIENCE = 60
PROGRAM = "import sys; print('ready', flush=True); sys.stdin.readline()"


def expect_line(process, line):
    if not select.select([process.stdout], [], [], PATIENCE)[0] or process.stdout.readline() != line + "\n":
        sys.exit(f"no {line} from {process.args[-2:]}")


def start(*command):
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def record(target, name):
    session = start(tool, "record", "-e", "cpu-clock", "-p", str(target.pid), "-o", data + name, "--",
                    "sh", "-c", "echo go; read word")
    expect_line(session, "go")
    return session


def guard_of(session):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name, rest = open(f"/proc/{pid}/stat").read().rsplit(")", 1)
        except FileNotFoundError:
            continue
        if name.endswith("(pyinject-guard") and int(rest.split()[1]) == session.pid:
            return int(pid)
    sys.exit("no guard")


def look():
    output = subprocess.run([tool, "status", "--json"], stdout=subprocess.PIPE, text=True).stdout
    status = {one["pid"]: (one["trampoline"], one["session"]) for one in json.loads(output)["processes"]}
    return [status.get(target.pid) for target in targets]


targets = [start(*interpreter.split(), "-c", PROGRAM) for _ in range(3)]
for target in targets:
    expect_line(target, "ready")
killed = record(targets[0], "1")
lives = record(targets[1], "2")
subprocess.run([tool, "activate", "-p", str(targets[2].pid)], check=True)
guard = guard_of(killed)
os.kill(killed.pid, signal.SIGSTOP)  # it must neither switch off nor exit before its guard is killed
os.kill(guard, signal.SIGKILL)
os.kill(killed.pid, signal.SIGKILL)
killed.wait(PATIENCE)
before = look()
table = subprocess.run([tool, "status"], stdout=subprocess.PIPE, text=True).stdout
abandoned = subprocess.run([tool, "deactivate", "--abandoned"], stderr=subprocess.PIPE, text=True)
after = look()
lives.communicate("\n", timeout=PATIENCE)
for target in targets:
    target.communicate("\n", timeout=PATIENCE)
print(json.dumps({"before": before, "table": table, "status": abandoned.returncode, "messages": abandoned.stderr,
                  "after": after, "session": lives.returncode, "ends": [target.returncode for target in targets]}),
      flush=True)
