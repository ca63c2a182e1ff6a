# Run by perf: see docs/perf-scripts.md, or add -- --help.
import os
import sys

sys.dont_write_bytecode = True  # often run by root, in folders of others
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))

from pyinject_perf.flamegraph import Flamegraph  # noqa: E402
from pyinject_perf.script import callbacks  # noqa: E402

globals().update(callbacks(Flamegraph))
