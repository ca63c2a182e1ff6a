"""Interpreters for the tests that are written in Python.

Environment: PYINJECT_TOOL, the tool; PYINJECT_SOURCE_DIR; PYINJECT_REQUIRE_PYTHONS: a missing package or interpreter is a
failure, not a skip.
"""
import glob
import os
import subprocess

SOURCE = os.environ.get("PYINJECT_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
TOOL = os.environ.get("PYINJECT_TOOL") or os.path.join(SOURCE, "build/ci/bin/perf-pyinject")
ROOTS = os.environ.get("PYINJECT_ROOTS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "perf-pyinject/roots")
REQUIRED = bool(os.environ.get("PYINJECT_REQUIRE_PYTHONS"))
PATIENCE = 60  # seconds, for each command


def python(minimum):
    """The path of a CPython of at least 3.MINIMUM with a GIL, or None."""
    candidates = os.environ.get("PYINJECT_TEST_PYTHONS", "").split(":")
    candidates += [f"{ROOTS}/bin/python3.{minor}" for minor in (15, 14, 13)]
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1*/bin/python3")))
    for candidate in filter(os.path.exists, candidates):
        asked = subprocess.run([candidate, "-c", "import sys; print(sys.version_info[1] if 't' not in sys.abiflags else 0)"],
                               capture_output=True, text=True, timeout=PATIENCE, check=False)
        if asked.returncode == 0 and int(asked.stdout) >= minimum:
            return candidate
    return None


class Target:
    """PROGRAM, run by INTERPRETER; it has printed a line that begins with "ready"."""

    def __init__(self, interpreter, program):
        self._process = subprocess.Popen([interpreter, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = str(self._process.pid)
        self.answer = ""  # the rest of that line

    def __enter__(self):
        line = self._process.stdout.readline()
        assert line.startswith("ready"), line
        self.answer = line[len("ready"):].strip()
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
