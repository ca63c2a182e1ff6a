"""The output for programs is what docs/schemas describes: every verb with JSON, on a real process."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import validate

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from pythons import PATIENCE, REQUIRED, SOURCE, TOOL, Target, python  # noqa: E402

DEBIANS = "/usr/bin/python3"  # has the package; another python3 may be first on PATH
VIEWS = ("functions", "lines", "threads", "processes", "tasks", "gil", "tree", "waits", "events", "imports", "annotate")

# Threads that wait for a lock, sleep and compute, and an asyncio task.
PROGRAM = """
import asyncio, threading, time
lock = threading.Lock()
def holds():
    while True:
        with lock:
            time.sleep(0.01)
def computes():
    while True:
        sum(i * i for i in range(1000))
        time.sleep(0.001)
async def main():
    asyncio.create_task(asyncio.sleep(600), name="nap")
    print("ready", flush=True)
    while True:
        sum(range(1000))
        await asyncio.sleep(0.001)
for function in (holds, holds, computes):
    threading.Thread(target=function, daemon=True).start()
asyncio.run(main())
"""


class Schemas(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)

    def skip(self, why):
        (self.fail if REQUIRED else self.skipTest)(why)

    def path(self, name):
        return os.path.join(self._directory.name, name)

    def tool(self, *words):
        ran = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=PATIENCE, check=False,
                             env={**os.environ, "DEBUGINFOD_URLS": ""})
        if ran.returncode == 125 and "(no_" in ran.stderr:
            self.skipTest(ran.stderr)  # rights, BTF
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def check(self, schema, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        self.assertEqual(validate.differences(f"{SOURCE}/docs/schemas/{schema}.schema.json", self.path(name)), [])

    def test_processes(self):
        with Target(self.interpreter(12), PROGRAM) as target:
            self.check("status", "status", self.tool("status", "--json").stdout)
            self.check("dump", "dump", self.tool("dump", "--json", "-p", target.pid).stdout)
            self.check("dump", "native", self.tool("dump", "--native", "--json", "-p", target.pid).stdout)
            self.check("top", "top", self.tool("top", "--once", "-d", "1", "--json", "-p", target.pid).stdout)
            self.check("why", "why", self.tool("why", "-d", "1", "--json", "-p", target.pid).stdout)

    def test_recordings(self):
        with Target(self.interpreter(12), PROGRAM) as target:
            recorded = self.tool("record", "-p", target.pid, "--gil", "--tasks", "--off-cpu", "--lines", "-B", "-o",
                                 self.path("data"), "--stats", self.path("stats"), "--log-format", "json", "--", "sleep", "1")
        self.check("log", "log.jsonl", recorded.stderr)
        self.check("stats", "stats.json", self.read("stats"))
        for view in VIEWS:
            self.check("report", view, self.tool("report", "--view", view, "--json", self.path("data")).stdout)
        self.check("report", "diff", self.tool("report", "--diff", self.path("data"), "--json", self.path("data")).stdout)
        self.tool("export", "-f", "jsonl", "-o", self.path("samples"), "--stats", self.path("stats"), self.path("data"))
        self.check("stats", "export.json", self.read("stats"))

    def test_doctor(self):
        with open(f"{SOURCE}/docs/doctor-json.md", encoding="utf-8") as page:
            documented = page.read()
        with Target(self.interpreter(12), PROGRAM) as target:
            runs = {"machine": [], "python": ["-p", target.pid], "refused": ["-p", f"{target.pid},{os.getppid()}"]}
            for name, words in runs.items():
                ran = subprocess.run([TOOL, "doctor", "--json", *words], capture_output=True, text=True, timeout=PATIENCE,
                                     check=False, cwd=self._directory.name)
                self.assertIn(ran.returncode, (0, 1), ran.stderr)
                self.check("doctor", name, ran.stdout)
                report = json.loads(ran.stdout)
                self.assertEqual(report["works"], ran.returncode == 0)
                lists = [report["checks"], *(process["checks"] for process in report["processes"])]
                for check in (one for checks in lists for one in checks):
                    self.assertIn(f"`{check['name']}`", documented)

    def test_calls(self):
        with Target(self.interpreter(15), PROGRAM) as target:
            ready = json.loads(self.tool("status", "--json", "-p", target.pid).stdout)["processes"][0]
            recorded = subprocess.run([TOOL, "record", "--functions", "-p", target.pid, "-B", "-o", self.path("data"), "--",
                                       "sleep", "0.2"], capture_output=True, text=True, timeout=PATIENCE, check=False)
            if recorded.returncode != 0:
                self.skipTest(f"{ready['version']}: {recorded.stderr}")  # probes, rights
        self.check("functions", "functions", self.tool("functions", "--json", "-i", self.path("data")).stdout)

    # What --help of each verb lists, it has, too.
    def test_options(self):
        with open(os.environ["PYINJECT_OPTIONS"], encoding="utf-8") as file:
            text = file.read()
        self.check("options", "options", text)
        verbs = {verb["name"]: {option["name"]: option for option in verb["options"]} for verb in json.loads(text)["verbs"]}
        for verb, options in verbs.items():
            listed = set(re.findall(r"^  (?:-\w, )?--([\w-]+)", self.tool(verb, "--help").stdout, re.MULTILINE))
            self.assertLessEqual(listed, set(options), verb)
        self.assertEqual(verbs["record"]["keep"]["needs"], "repeat")
        self.assertEqual(verbs["record"]["pid"]["value"], {"name": "LIST", "kind": "pids", "words": []})
        self.assertIn("pprof", verbs["export"]["format"]["value"]["words"])

    def interpreter(self, minimum):
        return python(minimum) or self.skip(f"needs CPython 3.{minimum} or later")

    def test_differences_are_found(self):
        status = json.loads(self.tool("status", "--json").stdout)
        status["unreadable"] = "1"
        status["undocumented"] = 1
        del status["schema"]
        with open(self.path("wrong"), "w", encoding="utf-8") as file:
            json.dump(status, file)
        found = validate.differences(f"{SOURCE}/docs/schemas/status.schema.json", self.path("wrong"))
        self.assertEqual(len(found), 3, found)


if __name__ == "__main__":
    if validate.Draft202012Validator is None and sys.executable != DEBIANS and os.path.exists(DEBIANS):
        os.execv(DEBIANS, [DEBIANS, "-B", *sys.argv])
    if validate.Draft202012Validator is None:
        print("needs jsonschema (Debian: python3-jsonschema)")
        sys.exit(1 if REQUIRED else 77)
    unittest.main()
