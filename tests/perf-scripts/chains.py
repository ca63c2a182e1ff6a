"""Made-up samples in the form that perf script hands them over: leaf first."""

import itertools
import os
import sys

SOURCE = os.environ.get("PYINJECT_SOURCE_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SCRIPTS = os.path.join(SOURCE, "perf-scripts/scripts/python")
sys.dont_write_bytecode = True
sys.path.insert(0, SCRIPTS)

MAP = "/tmp/perf-42.map"
LIB = "/opt/py/lib/libpython3.12.so.1.0"
STRIPPED = "/usr/bin/python3.15"
KERNEL_IP = 0xFFFFFFFF81000000


_ADDRESSES = itertools.count(0x10000, 0x10)


def entry(name, dso=LIB, ip=None):
    """Every entry has an address of its own: equal ones are a function and what was put inline into it."""
    result = {"ip": next(_ADDRESSES) if ip is None else ip}
    if name is not None:
        result["sym"] = {"name": name}
    if dso is not None:
        result["dso"] = dso
    return result


def py(function, file="/app/main.py"):
    return entry("py::%s:%s" % (function, file), MAP)


def kernel(name):
    return entry(name, "[kernel.kallsyms]", KERNEL_IP)


def sample(root_first, comm="python3", event="cycles", period=7):
    return {
        "ev_name": event,
        "comm": comm,
        "callchain": list(reversed(root_first)),
        "sample": {"period": period, "ip": 0x1000},
    }


def run(result_class, arguments, samples):
    """(lines on stdout, notes) of one script for these samples."""
    from pyinject_perf.samples import Selection

    options = result_class.parser().parse_args(arguments)
    result = result_class(options)
    selection = Selection(options, result.add)
    for one in samples:
        selection.add(one["ev_name"], one)
    return list(result.lines()), list(selection.notes())
