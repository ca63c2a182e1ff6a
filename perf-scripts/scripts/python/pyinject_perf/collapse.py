"""Folded stacks: one line per distinct call chain, `root;...;leaf count`."""

import re
from collections import Counter

from .frames import MARK, PYTHON, label, one_line
from .interpreter import strip_machinery
from .samples import make_parser

_TRAILING_NUMBER = re.compile(r" (?=\d+(\.\d*)?$)")


def folded_name(name):
    """A name as it is written between two semicolons. Only what would break the format is replaced.

    A frame that ends in a blank and a number would be read as a count by flame-graph tools.
    """
    return _TRAILING_NUMBER.sub("_", one_line(name).strip().replace(";", ":")) or "[unknown]"


class Collapse:
    NAME = "pyinject-collapsed"

    def __init__(self, options):
        self._python_only = options.python_only
        self._strip = options.strip_interpreter
        self._stacks = Counter()

    @classmethod
    def parser(cls):
        parser = make_parser(cls.NAME, "Folded stacks for flame-graph tools.")
        parser.add_argument(
            "--python-only", action="store_true", help="Python functions only; time in C goes to the Python caller"
        )
        parser.add_argument(
            "--strip-interpreter",
            action="store_true",
            help="leave out the evaluation loop, trampolines and call helpers of the interpreter",
        )
        return parser

    def add(self, sample):
        frames = sample.frames
        if self._python_only:
            frames = [f for f in frames if f.kind in (PYTHON, MARK)]
        elif self._strip:
            frames = strip_machinery(frames)
        names = [sample.comm] + [label(f) for f in frames]
        self._stacks[";".join(map(folded_name, names))] += sample.weight

    def lines(self):
        for stack, count in sorted(self._stacks.items()):
            yield "%s %d" % (stack, count)
