# Two programs on an isolated machine (a pid namespace), of which a tool records those that its options select.
#
#   chosen.py TOOL DATA INTERPRETER CGROUP OPTION...
#
# The first belongs to the user nobody, has the name webworker, is in CGROUP (empty: none) and works in chosen(); the
# other works in other(). Prints the recording's result and the processes active afterwards as one line of JSON.
import json
import os
import select
import subprocess
import sys

tool, data, interpreter, cgroup, *options = sys.argv[1:]
PATIENCE = 60

PROGRAM = """
import os, select, sys, time
name, user = sys.argv[1:]
exec(f"def {name}(until):\\n    while time.process_time() < until:\\n        sum(range(300))")
if user:
    open("/proc/self/comm", "w").write("webworker")
    os.setgroups([])
    os.setgid(int(user))
    os.setuid(int(user))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(300):
    globals()[name](time.process_time() + 0.001)
print("burned", flush=True)
sys.stdin.readline()
"""


def start(name, user):
    process = subprocess.Popen(interpreter.split() + ["-c", PROGRAM, name, user],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect_line(process, "ready")
    return process


def expect_line(process, line):
    if not select.select([process.stdout], [], [], PATIENCE)[0] or process.stdout.readline() != line + "\n":
        sys.exit(f"no {line} from {process.args[-2:]}")


def tell(process):
    process.stdin.write("\n")
    process.stdin.flush()


chosen = start("chosen", "65534")
other = start("other", "")
if cgroup:
    with open(cgroup + "/cgroup.procs", "w") as file:
        file.write(str(chosen.pid))
recording = subprocess.Popen([tool, "record", *options, "-F", "499", "-e", "cpu-clock", "-o", data, "--",
                              "sh", "-c", "echo go; read word"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
expect_line(recording, "go")
for process in chosen, other:
    tell(process)
for process in chosen, other:
    expect_line(process, "burned")
_, messages = recording.communicate("\n", timeout=PATIENCE)
status = json.loads(subprocess.run([tool, "status", "--json"], stdout=subprocess.PIPE, text=True).stdout)
for process in chosen, other:
    process.communicate("\n", timeout=PATIENCE)
print(json.dumps({"status": recording.returncode, "messages": messages, "other": other.pid, "chosen": chosen.pid,
                  "ends": [chosen.returncode, other.returncode],
                  "active": [one["pid"] for one in status["processes"] if one.get("trampoline", "off") not in ("off", None)]}),
      flush=True)
