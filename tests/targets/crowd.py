# An isolated machine (a pid namespace) with many processes, which a tool records while others start and exit.
#
#   crowd.py TOOL DATA OPTIONS STEADY STORM INTERPRETER...
#
# STEADY programs of each kind run from the start; STORM Pythons start and exit during the recording, among ten times as
# many other programs. OPTIONS are for record; OPTIONS and INTERPRETER, a command, are words separated by blanks. Prints
# the names of the programs, the harmed ones, and the processes still active afterwards as one line of JSON.
import json
import os
import select
import subprocess
import sys
import time

tool, data, options, steady, storm, *interpreters = sys.argv[1:]
PATIENCE = 60

# Works in a function with the name of the program.
PROGRAM = """
import select, sys, time
name, processor_time = sys.argv[1:]
exec(f"def {name}(until):\\n    while time.process_time() < until:\\n        sum(range(300))")
burn = globals()[name]
if processor_time == "always":
    print("ready", flush=True)
    enough = None
    while True:
        if select.select([sys.stdin], [], [], 0.1 if enough is None else 0.01)[0]:
            if sys.stdin.readline() != "more\\n":
                break
            enough = time.process_time() + 0.1
        burn(time.process_time() + 0.002)
        if enough is not None and time.process_time() >= enough:
            print("enough", flush=True)
            enough = None
else:
    for _ in range(int(float(processor_time) * 1000)):
        burn(time.process_time() + 0.001)
print("right", flush=True)
"""
OWN_TMP = ["sh", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support/own-tmp.sh"), "mount -t tmpfs none /mnt", ":"]
# A separate mount namespace with a private /tmp.
PRIVATE = ["unshare", "-m", *OWN_TMP]
# A separate pid namespace as well: all of these have the same pid.
CONTAINED = ["unshare", "-mpf", "--mount-proc", "--kill-child", *OWN_TMP, "sh", "-c", '"$@"; status=$?; exit $status', "sh"]


def python(number, name, processor_time):
    command = interpreters[number % len(interpreters)].split()
    kind = number % 7
    # All chroots share one /tmp, where two processes with the same pid would share a map.
    contained = kind == 5 and "chroot" not in command[0]
    wrapper = PRIVATE if kind == 3 else CONTAINED if contained else []
    # It inherits this script's stderr.
    return subprocess.Popen(wrapper + command + ["-c", PROGRAM, name, processor_time],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line_of(process):
    if not select.select([process.stdout], [], [], PATIENCE)[0]:
        raise RuntimeError(f"no line from {process.args[-2:]}")
    return process.stdout.readline()


harmed = []


def expect_right(name, process):
    try:
        text, _ = process.communicate("\n", timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        text = "does not end"
    except BrokenPipeError:
        text = process.stdout.read()
    if text != "right\n" or process.wait(PATIENCE) != 0:
        harmed.append([name, process.returncode, text])


old = {f"steady_{number}": python(number, f"steady_{number}", "always") for number in range(int(steady))}
for process in old.values():
    line_of(process)
bystanders = [subprocess.Popen(["sleep", "1000"]) for _ in range(int(steady))]

recording = subprocess.Popen([tool, "record", *options.split(), "-a", "-B", "-F", "199", "-e", "cpu-clock", "-o", data, "--",
                              "sh", "-c", "echo go; read word"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
line_of(recording)
young = {}
running = []
for number in range(int(storm)):
    name = f"late_{number}"
    young[name] = python(number, name, "0.3")
    running.append(young[name])
    for _ in range(10):
        subprocess.run(["/bin/true"])
    while len(running) > 4:
        running.pop(0).wait(PATIENCE)
for name, process in young.items():
    expect_right(name, process)
# Enough work for some samples of each, however short the storm was.
for process in old.values():
    process.stdin.write("more\n")
    process.stdin.flush()
for process in old.values():
    line_of(process)
_, messages = recording.communicate("\n", timeout=120)

status = json.loads(subprocess.run([tool, "status", "--json"], stdout=subprocess.PIPE, text=True).stdout)
active = [one for one in status["processes"] if one.get("trampoline", "off") not in ("off", None)]
seen = [one["pid"] for one in status["processes"] if one.get("trampoline") == "off"]
for name, process in old.items():
    expect_right(name, process)
for process in bystanders:
    process.kill()
    process.wait(PATIENCE)
print(json.dumps({"names": list(old) + list(young), "harmed": harmed, "active": active, "seen": len(seen),
                  "status": recording.returncode, "messages": messages}), flush=True)
