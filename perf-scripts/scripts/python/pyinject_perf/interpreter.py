"""Telling the interpreter's own machinery from the C code that a Python program asked for.

Between two Python functions of a call chain stand frames that say nothing about the program: the evaluation loop,
the trampoline's evaluator, the vectorcall helpers. Others do: sorted() in `f -> sorted -> key`. Where the interpreter
has symbols the names below tell them apart; a distribution's stripped interpreter shows most of both as bare addresses.
"""

import re

from .frames import NATIVE, PYTHON, base_name

_INTERPRETER_FILE = re.compile(r"(libpython3|python3?$|python3\.)")

_MACHINERY = re.compile(
    r"_?PyEval_(EvalFrame|EvalCode|Vector|Frame)\w*"
    r"|_PyEvalFrame\w+"
    r"|_TAIL_CALL_\w+"
    r"|\w*trampoline_evaluator"
    r"|_?PyObject_(Fast)?(Call|Vectorcall|MakeTpCall)\w*"
    r"|_?PyVectorcall_\w+"
    r"|_?PyFunction_Vectorcall\w*"
    r"|_?PyCFunction_(Fast)?Call\w*"
    r"|_?Py_\w*Call\w*_StackRef\w*"
    r"|c?(function|method|methoddescr|wrapperdescr|classmethoddescr)_(vectorcall|call)\w*"
    r"|_?vectorcall\w*|object_vacall|call_method\w*|lookup_maybe_method"
    r"|slot_tp_\w+|type_call|method_vectorcall\w*"
    r"|gen_(send|iternext|close|throw)\w*|_?PyGen_\w+|_?PyIter_Send"
    # The way from the process' or thread's start into the first Python function.
    r"|Py_(Main|BytesMain|RunMain)|pymain_\w+|_?PyRun_\w+|pyrun_\w+|run_mod|run_eval_code_obj"
    r"|thread_run|pythread_wrapper"
    r"|builtin_exec(_impl)?"
)
# What compilers append to a function's name when they split or clone it.
_CLONE = re.compile(r"\.(cold|part|constprop|isra|lto_priv|llvm|localalias)\b.*")


def is_machinery_name(name):
    return _MACHINERY.fullmatch(_CLONE.sub("", name)) is not None


def _interpreter_files(frames):
    """The files the interpreter's code is in: a trampoline's caller is always the interpreter."""
    files = {caller.dso for caller, frame in zip(frames, frames[1:]) if frame.kind == PYTHON and caller.kind == NATIVE}
    files.update(f.dso for f in frames if f.kind == NATIVE and f.dso and _INTERPRETER_FILE.match(base_name(f.dso)))
    files.discard(None)
    return files


def strip_machinery(frames):
    """The frames (root first) without the interpreter's machinery.

    A frame inside the interpreter's file is machinery if its name says so, or if it has no name and stands
      * outside the first Python function or between two of them, or
      * directly below a Python function: a trampoline calls nothing but the evaluation loop.
    A nameless frame further below the innermost Python function is C code that does the work: it stays.
    What the compiler put inline into machinery goes with it.
    """
    files = _interpreter_files(frames)
    innermost = max((i for i, f in enumerate(frames) if f.kind == PYTHON), default=-1)
    kept = []
    dropped = None  # the frame before, if it was machinery
    for i, frame in enumerate(frames):
        machinery = False
        if frame.kind == NATIVE and frame.dso in files:
            if frame.name is None:
                machinery = i <= innermost + 1 and innermost >= 0
            else:
                machinery = is_machinery_name(frame.name)
            machinery = machinery or (dropped is not None and dropped.ip == frame.ip)
        if machinery:
            dropped = frame
        else:
            dropped = None
            kept.append(frame)
    return kept
