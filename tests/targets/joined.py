# An isolated machine (a pid namespace) that perf records as a whole and a tool joins.
#
#   joined.py TOOL DATA INTERPRETER
#
# One program starts before the join, another one after it. Prints the tool's messages as one line of JSON.
import json
import select
import subprocess
import sys

tool, data, interpreter = sys.argv[1:]
PATIENCE = 60

# Works in a function with the name of the program, for a second of CPU time after each line.
PROGRAM = """
import sys, time
exec(f"def {sys.argv[1]}(until):\\n    while time.process_time() < until:\\n        sum(range(300))")
print("ready", flush=True)
for _ in sys.stdin:
    globals()[sys.argv[1]](time.process_time() + 1)
    print("done", flush=True)
"""


def line_of(stream):
    if not select.select([stream], [], [], PATIENCE)[0]:
        raise RuntimeError("no line")
    return stream.readline()


def python(name):
    process = subprocess.Popen(
        [*interpreter.split(), "-c", PROGRAM, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    line_of(process.stdout)
    return process


def burn(process):
    process.stdin.write(b"\n")
    line_of(process.stdout)


early = python("early")
perf = subprocess.Popen(["perf", "record", "-a", "-B", "-g", "-F", "199", "-e", "cpu-clock", "-o", data],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
joined = subprocess.Popen([tool, "join", str(perf.pid)], stderr=subprocess.PIPE, bufsize=0)
messages = b""
while b"joined perf record" not in messages:
    text = line_of(joined.stderr)
    if not text:
        break
    messages += text
late = python("late")
burn(early)
burn(late)
perf.send_signal(2)
perf.wait(PATIENCE)
_, rest = joined.communicate(timeout=PATIENCE)
for process in (early, late):
    process.stdin.close()
    process.wait(PATIENCE)
print(json.dumps({"status": joined.returncode, "messages": (messages + rest).decode()}), flush=True)
