"""A table of Python functions with their own and their total share of the samples."""

import argparse
from collections import Counter

from .frames import KERNEL, PYTHON, label, one_line, python_name
from .interpreter import strip_machinery
from .samples import counts_waits, make_parser
from .table import file_label, layout, short_paths, shorten

_NO_PYTHON = "(no Python function)"
_NAME_COLUMNS = 60
_HEADER = [" self%", " self", " python", " native", " kernel", " total%", " total", "function", "file"]


def _positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def _seconds(nanoseconds):
    """"3.82 s": three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            value = nanoseconds / size
            return "%.*f %s" % (2 if value < 10 else 1 if value < 100 else 0, value, unit)
    return "%d ns" % nanoseconds if nanoseconds else "0"


class _Counts:
    """What one function has."""

    def __init__(self):
        self.own = Counter()  # where the time went while this was the innermost Python function -> weight
        self.total = 0
        self.natives = Counter()

    @property
    def self(self):
        return sum(self.own.values())


def _leaf(frames):
    """(python | native | kernel, label of the leaf symbol or None) of the frames below the innermost Python function."""
    leaf = frames[-1]
    if leaf.kind == KERNEL:
        return "kernel", label(leaf)
    innermost = max((i for i, f in enumerate(frames) if f.kind == PYTHON), default=-1)
    if innermost >= 0 and strip_machinery(frames)[-1].kind == PYTHON:
        return "python", None
    name = label(leaf)
    return "native", name if leaf.name is None else "%s [%s]" % (name, file_label(leaf.dso))


class _Group:
    def __init__(self, title):
        self.title = title
        self.samples = 0
        self.functions = {}

    def add(self, sample):
        self.samples += sample.weight
        names = [f.name for f in sample.frames if f.kind == PYTHON] or [None]
        for name in set(names):  # a recursive function counts once
            self.functions.setdefault(name, _Counts()).total += sample.weight
        counts = self.functions[names[-1]]
        kind, native = _leaf(sample.frames)
        counts.own[kind] += sample.weight
        if native is not None:
            counts.natives[native] += sample.weight


class Top:
    NAME = "pyinject-top"

    def __init__(self, options):
        self._options = options
        self._waits = counts_waits(options)
        self._groups = {}

    @classmethod
    def parser(cls):
        parser = make_parser(cls.NAME, "Python functions by their share of the samples.")
        parser.add_argument("--limit", type=_positive, metavar="N", help="at most N functions (default: all)")
        parser.add_argument("--sort", choices=("self", "total"), default="self", help="order (default: self)")
        parser.add_argument("--by-thread", action="store_true", help="one table for each thread")
        parser.add_argument(
            "--native",
            nargs="?",
            type=_positive,
            const=5,
            default=0,
            metavar="N",
            help="list the N heaviest C and kernel functions below each function (default: 5)",
        )
        parser.add_argument("--wide", action="store_true", help="do not shorten names and paths")
        return parser

    def add(self, sample):
        key = (sample.comm, sample.pid, sample.tid) if self._options.by_thread else None
        if key not in self._groups:
            title = "thread %s, tid %d of process %d: " % (one_line(sample.comm), sample.tid, sample.pid) if key else ""
            self._groups[key] = _Group(title)
        self._groups[key].add(sample)

    def lines(self):
        unit = "periods of events" if self._options.period else "samples"
        groups = sorted(self._groups.values(), key=lambda g: (-g.samples, g.title))
        for i, group in enumerate(groups):
            if i:
                yield ""
            weight = self._weight(group.samples)
            yield "%s%s %s" % (group.title, weight, "of waiting" if self._waits else unit)
            yield from layout(_HEADER, list(self._rows(group)))

    def _rows(self, group):
        def weight(item):
            name, counts = item
            first, second = counts.self, counts.total
            if self._options.sort == "total":
                first, second = second, first
            return (-first, -second, name)

        functions = sorted(((n, c) for n, c in group.functions.items() if n is not None), key=weight)
        limit = self._options.limit or len(functions)
        shown, hidden = functions[:limit], functions[limit:]
        names = {symbol: python_name(symbol) for symbol, _ in shown}
        files = {n.file for n in names.values()}
        short = {f: f for f in files} if self._options.wide else short_paths(files)
        for symbol, counts in shown:
            name = names[symbol]
            yield from self._function(group, counts, name.function, short[name.file])
        if hidden:
            rest = _Counts()
            for _, counts in hidden:
                rest.own.update(counts.own)
            yield self._row(group, rest, "(%d more functions)" % len(hidden), "", total=False)
        if None in group.functions:
            yield from self._function(group, group.functions[None], _NO_PYTHON, "")

    def _function(self, group, counts, name, file):
        yield self._row(group, counts, name, file)
        shown = counts.natives.most_common() if self._options.native else []
        shown.sort(key=lambda item: (-item[1], item[0]))
        for native, weight in shown[: self._options.native]:
            yield self._native_row(group, weight, native)
        rest = shown[self._options.native :]
        if rest:
            yield self._native_row(group, sum(w for _, w in rest), "(%d more)" % len(rest))

    def _row(self, group, counts, name, file, total=True):
        own = counts.own
        return [
            self._percent(group, counts.self),
            self._weight(counts.self),
            self._weight(own["python"]),
            self._weight(own["native"]),
            self._weight(own["kernel"]),
            self._percent(group, counts.total) if total else "",
            self._weight(counts.total) if total else "",
            self._name(name),
            one_line(file),
        ]

    def _native_row(self, group, weight, name):
        return [self._percent(group, weight), self._weight(weight), "", "", "", "", "", "  - " + self._name(name), ""]

    def _weight(self, weight):
        return _seconds(weight) if self._waits else str(weight)

    def _name(self, name):
        name = one_line(name)
        return name if self._options.wide else shorten(name, _NAME_COLUMNS)

    @staticmethod
    def _percent(group, weight):
        return "%.1f%%" % (100.0 * weight / group.samples if group.samples else 0.0)
