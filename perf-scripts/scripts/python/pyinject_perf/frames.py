"""From what perf script hands over for one sample to a list of frames."""

import re
from typing import List, NamedTuple, Optional

PYTHON = "python"
NATIVE = "native"
KERNEL = "kernel"
MARK = "mark"

# CPython writes its trampolines into the perf map file under names like this:
#   py::qualified.name:/path/of/file.py
PYTHON_PREFIX = "py::"

# What perf-pyinject puts at the root of a sample on demand (--gil, --tasks, --off-cpu): no function at all.
_MARK = re.compile(r"\[(GIL held|waiting for the GIL|preempted|task .*)\]", re.DOTALL)

# The upper end of the address space is the kernel's on every 64-bit architecture that CPython's
# trampoline exists for.
_KERNEL_START = 0xFF00000000000000
_NOT_KERNEL = ("[vsyscall]",)


class Frame(NamedTuple):
    """One frame of a call chain. name is None where perf knows no symbol, dso where it knows no file."""

    kind: str
    name: Optional[str]
    dso: Optional[str]
    ip: int = 0


def base_name(path):
    return path.rstrip("/").rsplit("/", 1)[-1] if path else ""


def _kind(name, dso, ip):
    if name is not None and name.startswith(PYTHON_PREFIX):
        return PYTHON
    if name is not None and _MARK.fullmatch(name):
        return MARK
    if ip >= _KERNEL_START and dso not in _NOT_KERNEL:
        return KERNEL
    # A guest's kernel has addresses of its own.
    if dso is not None and dso.startswith(("[kernel", "[guest.kernel")):
        return KERNEL
    return NATIVE


def make_frame(name, dso, ip):
    return Frame(_kind(name, dso, ip), name or None, dso or None, ip)


def frames_of(param_dict) -> List[Frame]:
    """The frames of one sample of process_event(), root first.

    Unwinding by frame pointers runs past the first function of a thread into whatever lies on the stack
    there: outermost entries that belong to no file at all are dropped, unless there is nothing else.
    """
    chain = param_dict.get("callchain") or []
    frames = [
        make_frame((entry.get("sym") or {}).get("name"), entry.get("dso"), entry.get("ip", 0)) for entry in chain
    ]
    if not frames:
        # Recorded without call chains.
        sample = param_dict.get("sample") or {}
        frames = [make_frame(param_dict.get("symbol"), param_dict.get("dso"), sample.get("ip", 0))]
    frames.reverse()
    first = 0
    while first < len(frames) - 1 and frames[first] == (NATIVE, None, None, frames[first].ip):
        first += 1
    return frames[first:]


_LINE_BREAKS = re.compile(r"[\r\n\t\v\f\0\x85\u2028\u2029]")


def one_line(text):
    """Names come from the profiled program, they may hold anything."""
    return _LINE_BREAKS.sub(" ", text)


def label(frame):
    """How a frame is called in the output: its symbol, or its file in brackets where perf knows no symbol."""
    name = frame.name
    if name is None:
        file = base_name(frame.dso).strip("[]")
        name = "[%s]" % file if file else "[unknown]"
    return name + "_[k]" if frame.kind == KERNEL else name
