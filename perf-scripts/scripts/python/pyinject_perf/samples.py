"""The options that both scripts have, and the choice of the samples that count."""

import argparse
import re
import sys
from typing import List, NamedTuple

from .frames import PYTHON, Frame, frames_of

_HYBRID = re.compile(r"cpu_(?:core|atom|lowpower)/([^/]*)/.*")


class Sample(NamedTuple):
    comm: str
    weight: int
    frames: List[Frame]


# What `record --off-cpu` adds: the period of a sample is the time until its thread runs again, in nanoseconds.
_WAITS = "context-switches"


def event_key(name):
    """An event's name without modifiers; the two kinds of cores of a hybrid processor count as one event."""
    if re.fullmatch(_WAITS + r"(/.*/)?(:\w+)?", name):
        return _WAITS
    hybrid = _HYBRID.fullmatch(name)
    if hybrid:
        return hybrid.group(1)
    # sched:sched_switch is a name, cpu-clock:ppp and cycles:u are names with modifiers.
    return re.sub(r":[ukhGHpPSDIWeb]+$", "", name)


def counts_waits(options):
    return options.off_cpu or (options.event is not None and event_key(options.event) == _WAITS)


def make_parser(name, description):
    parser = argparse.ArgumentParser(
        prog="perf script -s %s.py -i perf.data --" % name,
        description=description,
        epilog="perf takes every option up to the -- for itself. "
        "With `perf script report %s` the -- may be left out." % name,
        allow_abbrev=False,
    )
    parser.add_argument("--event", metavar="NAME", help="count this event (default: the first one that is no wait)")
    parser.add_argument("--off-cpu", action="store_true", help="count the waits of record --off-cpu, by their time")
    parser.add_argument("--period", action="store_true", help="weight samples by their period, e.g. cycles")
    parser.add_argument("--comm", metavar="NAME", help="count threads of this name only")
    return parser


class Selection:
    """Hands the samples that count on to a function, and keeps account of the others."""

    def __init__(self, options, consume):
        self._waits = counts_waits(options)
        self._event = _WAITS if self._waits else event_key(options.event) if options.event else None
        self._period = options.period or self._waits
        self._longest = 0
        self._comm = options.comm
        self._consume = consume
        self._other_events = {}
        self._samples = 0
        self._with_python = 0
        self._nameless = 0

    def add(self, event, param_dict):
        key = event_key(event)
        if self._event is None and key != _WAITS:
            self._event = key
        if key != self._event:
            self._other_events[key] = self._other_events.get(key, 0) + 1
            return
        comm = param_dict.get("comm") or "[unknown]"
        if self._comm is not None and comm != self._comm:
            return
        values = param_dict.get("sample") or {}
        frames = frames_of(param_dict)
        self._samples += 1
        self._with_python += any(f.kind == PYTHON for f in frames)
        self._nameless += any(f.name is None and f.dso is not None and _MAP_FILE.search(f.dso) for f in frames)
        weight = values.get("period", 1) if self._period else 1
        self._longest = max(self._longest, weight)
        self._consume(Sample(comm, weight, frames))

    def notes(self):
        """What a reader of the result should know."""
        if self._other_events:
            others = ", ".join("%s: %d" % item for item in sorted(self._other_events.items()))
            counted = "counted event %s only; " % self._event if self._event else ""
            yield "%ssamples of other events: %s (choose with --event or --off-cpu)" % (counted, others)
        if not self._samples:
            yield "no samples"
        elif self._waits and self._longest <= 1:
            yield "the switches of this file have no times: record it with --off-cpu"
        if self._samples and not self._with_python:
            yield "no sample has a Python function in its call chain"
        if self._nameless:
            yield "%d samples have functions that the perf map file has no name for" % self._nameless


_MAP_FILE = re.compile(r"/perf-\d+\.map$")


def write_result(lines, notes, program):
    """Lines to stdout, notes to stderr. A reader who goes away early (| head) is no error."""
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        for line in lines:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open("/dev/null", "w")
    for note in notes:
        sys.stderr.write("%s: %s\n" % (program, note))
    sys.stderr.flush()
