"""The readers of a recording: what they take, and what they show of the innocent Python."""
import base64
import http.client
import http.server
import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../push"))
from profile_server import fields, gzip, varint  # noqa: E402

HANG = 200  # seconds: no working command takes as long, even on a busy machine
CHAIN = ["<module>", "main", "serve", "handle", "work"]  # of the innocent Python, outermost first
VIEWS = ["functions", "lines", "annotate", "tree", "waits", "events", "threads", "processes", "tasks", "gil", "imports"]
FORMATS = ["folded", "pprof", "gecko", "speedscope", "jsonl", "perfetto", "otlp"]
ALL_MARKS = ["--engine", "bpf", "--off-cpu", "--gil", "--tasks", "--lines"]  # so that each view has rows
MOST_SECONDS = 20  # of CPU time of a reader: ends one that would take minutes, and gigabytes, so that the test fails in time
DESCRIPTORS = 256  # of a reader, if it does not raise the limit itself: fewer than the files of some recordings


def without_waits(data):
    """Readers of a recording of samples only."""
    views = [["report", "--json", "--view", view] for view in VIEWS if view not in ("annotate", "waits", "tasks", "gil")]
    views += [["report", "--json", "--by", by] for by in ("native", "mixed")]
    return views + [["flamegraph", "-o", f"{data}.read"]] + [["export", "-f", form, "-o", f"{data}.read"] for form in FORMATS]


def all_of(data):
    """Readers of a recording with ALL_MARKS."""
    views = [["report", *form, "--view", view] for view in VIEWS for form in ([], ["--json"])] + [["report", "--csv"]]
    return views + [reader for reader in without_waits(data) if "--view" not in reader]


def limited():
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def limited_reader():
    limited()
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 1))


class Running:
    """The tool, whose messages go to a file."""

    def __init__(self, command, before=None):
        self.messages = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.messages, stdin=subprocess.DEVNULL,
                                        preexec_fn=before)
        self.watched = os.pidfd_open(self.process.pid)

    def said(self):
        """All its messages so far. The file has one position for both sides, which stays."""
        return os.pread(self.messages.fileno(), 1 << 20, 0).decode(errors="replace")

    def ends_within(self, seconds):
        return bool(select.select([self.watched], [], [], seconds)[0])

    def await_(self, condition):
        """Until CONDITION holds, or the process has ended, or it hangs."""
        deadline = time.monotonic() + HANG
        while not condition() and not self.ends_within(0.005) and time.monotonic() < deadline:
            pass

    def ended(self):
        """What it and its processes took."""
        if not (ended := self.ends_within(HANG)):
            os.kill(self.process.pid, signal.SIGKILL)
        os.close(self.watched)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        said = self.said()
        self.messages.close()
        return {"status": self.process.returncode, "ended": ended, "processor_seconds": usage.ru_utime + usage.ru_stime,
                "mebibytes": usage.ru_maxrss / 1024, "err": said[-1000:]}


def read(tool, reader, data):
    """What READER takes for the recording."""
    return {"reader": " ".join(reader), **Running([tool, *reader, data], limited_reader).ended()}


def shown(tool, data, pid):
    """By our own readers: the number of samples of PID, and in how many its function serve() is."""
    told = subprocess.run([tool, "report", "--json", "-p", str(pid), data], capture_output=True, text=True,
                          preexec_fn=limited_reader)
    if told.returncode != 0:
        raise SystemExit(f"report ended with {told.returncode}: {told.stderr}")
    tables = [table for table in json.loads(told.stdout)["tables"] if table["event"] == "cpu-clock"]
    return {"shown": tables[0]["all"], "shown_whole": sum(row["total"] for row in tables[0]["rows"] if row["name"] == "serve")}


def numbers(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def stacks_of(profile, pid):
    """In PROFILE, which is pprof: the number of samples of PID, and of those with the complete chain of its functions."""
    strings, locations, functions, samples = [], {}, {}, []
    for key, value in fields(gzip.decompress(profile)):
        if key == 2:
            samples.append(value)
        elif key == 4:
            whole = list(fields(value))
            locations[dict(whole)[1]] = [dict(fields(line))[1] for inner, line in whole if inner == 4]
        elif key == 5:
            function = dict(fields(value))
            functions[function[1]] = function[2]
        elif key == 6:
            strings.append(value)
    known = {number: strings[name].decode() for number, name in functions.items() if strings[name].decode() in CHAIN}
    found = complete = 0
    for sample in samples:
        whole = list(fields(sample))
        labels = [dict(fields(label)) for key, label in whole if key == 3]
        if not any(strings[label[1]] == b"pid" and label.get(3) == pid for label in labels):
            continue
        places = [place for key, packed in whole if key == 1 for place in numbers(packed)]
        chain = [known[one] for place in reversed(places) for one in reversed(locations[place]) if one in known]
        count = next(numbers(next(values for key, values in whole if key == 2)))
        found += count
        complete += count if len(chain) >= 3 and chain == CHAIN[:len(chain)] else 0
    return {"samples": found, "whole": complete}


class Store(http.server.BaseHTTPRequestHandler):
    """Accepts profiles for Pyroscope."""
    profiles = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told = json.loads(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        self.profiles += [base64.b64decode(sample["rawProfile"]) for series in told["series"] for sample in series["samples"]]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def push(tool, data, pid):
    """What the tool takes to push a recording, from the moment when it is complete."""
    Store.profiles = []
    store = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    threading.Thread(target=store.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        running = Running([tool, "record", "--repeat", "2s/1h", "--push", f"pyroscope=http://127.0.0.1:{store.server_port}", "--spool",
                           f"{directory}/spool", "--engine", "bpf", "-a", "-B", "-F", "499", "-e", "cpu-clock", "-o", f"{directory}/data"])
        running.await_(lambda: "recorded " in running.said())
        recorded = seconds_of(running.process.pid)
        checked, found = 0, {"samples": 0, "whole": 0}

        def arrived():
            nonlocal checked, found
            while checked < len(Store.profiles) and found["samples"] == 0:
                found = stacks_of(Store.profiles[checked], pid)
                checked += 1
            return found["samples"] > 0

        running.await_(arrived)
        if not running.ends_within(0):
            os.kill(running.process.pid, signal.SIGINT)
        result = running.ended()
    store.shutdown()
    store.server_close()
    result["processor_seconds"] -= recorded
    return {"reader": "record --push", **result, **found, "profiles": len(Store.profiles)}


def seconds_of(pid):
    """The CPU time of PID and of its reaped children."""
    with open(f"/proc/{pid}/stat") as stat:
        return sum(int(field) for field in stat.read().rpartition(")")[2].split()[11:15]) / os.sysconf("SC_CLK_TCK")


def serve(tool, pid):
    """What the tool takes to serve a profile, with the recording."""
    running = Running([tool, "serve", "--listen", "127.0.0.1:0", "--engine", "bpf", "-F", "499"], limited)
    address = re.compile(r"127\.0\.0\.1:(\d+)/debug/pprof/")
    running.await_(lambda: address.search(running.said()))
    found, answer = {"samples": 0, "whole": 0}, "not started"
    if listening := address.search(running.said()):
        client = http.client.HTTPConnection("127.0.0.1", int(listening[1]), timeout=HANG)
        client.request("GET", "/debug/pprof/profile?seconds=2")
        reply = client.getresponse()
        body = reply.read()
        answer = f"{reply.status} {body[:200] if reply.status != 200 else ''}"
        if reply.status == 200:
            found = stacks_of(body, pid)
        client.close()
    if not running.ends_within(0):
        os.kill(running.process.pid, signal.SIGTERM)
    return {"reader": "serve", "answer": answer, **running.ended(), **found}
