import contextlib
import io
import unittest

from chains import LIB, MAP, STRIPPED, entry, kernel, py, run, sample
from pyinject_perf.collapse import Collapse, folded_name

LOOP = entry("_PyEval_EvalFrameDefault")
EVALUATOR = entry("py_trampoline_evaluator")
VECTORCALL = entry("PyObject_Vectorcall")
SWITCH = "context-switches/period=1/"


def collapse(arguments, *samples):
    return run(Collapse, arguments, samples)[0]


class FoldedName(unittest.TestCase):
    def test_python_names_are_verbatim(self):
        for name in ("py::<module>:/a b/c.py", "py::f.<locals>.<lambda>:<string>", "operator()(int)"):
            self.assertEqual(folded_name(name), name)

    def test_what_breaks_the_format_is_replaced(self):
        self.assertEqual(folded_name("a;b\nc"), "a:b c")
        self.assertEqual(folded_name("worker 12"), "worker_12")
        self.assertEqual(folded_name("worker 1.5"), "worker_1.5")
        self.assertEqual(folded_name("worker 12 of 3x"), "worker 12 of 3x")
        self.assertEqual(folded_name(" \n"), "[unknown]")


class Folding(unittest.TestCase):
    def test_root_first_with_comm_and_count(self):
        chain = [entry("main"), py("<module>"), LOOP]
        self.assertEqual(
            collapse([], sample(chain), sample(chain), sample([entry("main")], comm="w;1")),
            ["python3;main;py::<module>:/app/main.py;_PyEval_EvalFrameDefault 2", "w:1;main 1"],
        )

    def test_period_is_the_weight_on_demand(self):
        self.assertEqual(collapse(["--period"], sample([LOOP]), sample([LOOP], period=5)), [
            "python3;_PyEval_EvalFrameDefault 12"
        ])

    def test_kernel_frames_have_the_suffix_and_nameless_ones_their_file(self):
        chain = [entry(None, "/usr/lib/libc.so.6"), entry(None, None), kernel("do_syscall_64"), kernel(None)]
        self.assertEqual(
            collapse([], sample(chain)), ["python3;[libc.so.6];[unknown];do_syscall_64_[k];[kernel.kallsyms]_[k] 1"]
        )

    def test_stack_contents_beyond_the_root_are_dropped(self):
        chain = [entry(None, None, 0x7265736F), entry(None, None, 0x7FFE), entry("main")]
        self.assertEqual(collapse([], sample(chain)), ["python3;main 1"])
        self.assertEqual(collapse([], sample(chain[:2])), ["python3;[unknown] 1"])

    def test_sample_without_call_chain(self):
        plain = sample([])
        plain["symbol"], plain["dso"] = "spin", "/usr/bin/true"
        self.assertEqual(collapse([], plain), ["python3;spin 1"])

    def test_python_only_keeps_marks(self):
        for mark in ("[GIL held]", "[waiting for the GIL]", "[preempted]", "[task a\n[b] c]"):
            chain = [entry(mark, "python"), entry("main"), py("<module>"), LOOP]
            self.assertEqual(
                collapse(["--python-only"], sample(chain)),
                ["python3;%s;py::<module>:/app/main.py 1" % folded_name(mark)],
            )

    def test_python_only_gives_c_time_to_the_caller(self):
        inside = [entry("main"), py("<module>"), LOOP, EVALUATOR, py("f"), LOOP, entry("memcpy"), kernel("fault")]
        self.assertEqual(
            collapse(["--python-only"], sample(inside), sample(inside[:4]), sample([entry("main")])),
            [
                "python3 1",
                "python3;py::<module>:/app/main.py 1",
                "python3;py::<module>:/app/main.py;py::f:/app/main.py 1",
            ],
        )


class StripInterpreter(unittest.TestCase):
    def strip(self, chain):
        (line,) = collapse(["--strip-interpreter"], sample(chain))
        return line[: line.rindex(" ")].replace(":/app/main.py", "").split(";")[1:]

    def test_machinery_goes_builtins_stay(self):
        chain = [entry("__libc_start_main", "/usr/lib/libc.so.6"), entry("Py_RunMain"), entry("PyEval_EvalCode")]
        chain += [EVALUATOR, py("f"), LOOP, VECTORCALL, entry("cfunction_vectorcall_FASTCALL_KEYWORDS")]
        chain += [entry("builtin_sorted"), entry("list_sort_impl"), entry("_PyFunction_Vectorcall"), EVALUATOR]
        chain += [py("f.<locals>.key"), LOOP]
        self.assertEqual(
            self.strip(chain),
            ["__libc_start_main", "py::f", "builtin_sorted", "list_sort_impl", "py::f.<locals>.key"],
        )

    def test_nameless_frames_of_the_interpreter_go_except_the_work_at_the_end(self):
        bare = entry(None, STRIPPED)
        chain = [bare, py("f"), bare, bare, bare, py("g"), bare, entry(None, STRIPPED, 0x2000)]
        self.assertEqual(self.strip(chain), ["py::f", "py::g", "[python3.15]"])
        self.assertEqual(self.strip([bare, bare]), ["[python3.15]", "[python3.15]"])

    def test_other_files_stay(self):
        chain = [py("f"), LOOP, entry("ufunc", "/np/core.so"), entry(None, "/np/core.so"), EVALUATOR, py("g")]
        self.assertEqual(self.strip(chain), ["py::f", "ufunc", "[core.so]", "py::g"])

    def test_code_that_is_in_no_file_stays(self):
        self.assertEqual(self.strip([py("f"), LOOP, entry(None, None), py("g")]), ["py::f", "[unknown]", "py::g"])

    def test_the_interpreter_may_have_any_file_name(self):
        chain = [entry("run", "/bin/app"), entry(None, "/bin/app"), py("f"), entry("_PyEval_Vector", "/bin/app")]
        self.assertEqual(self.strip(chain), ["run", "py::f"])

    def test_clones_and_inlined_parts_of_machinery_go(self):
        chain = [py("f"), entry("_PyEval_EvalFrameDefault.cold", ip=0x33), entry("Py_INCREF", ip=0x33)]
        self.assertEqual(self.strip(chain), ["py::f"])
        chain.append(entry("long_add", ip=0x44))
        self.assertEqual(self.strip(chain), ["py::f", "long_add"])

    def test_waiting_for_the_gil_stays(self):
        self.assertEqual(self.strip([py("f"), LOOP, entry("PyEval_RestoreThread")]), ["py::f", "PyEval_RestoreThread"])


class Waits(unittest.TestCase):
    """A file of record --off-cpu: many short waits in one function, a long one in another."""

    def setUp(self):
        self.samples = [sample([py("often")], event=SWITCH, period=1000000) for _ in range(20)]
        self.samples += [sample([py("long")], event=SWITCH, period=3820000000)]

    def test_are_not_counted_by_default(self):
        lines, notes = run(Collapse, [], self.samples + [sample([py("busy")])])
        self.assertEqual(lines, ["python3;py::busy:/app/main.py 1"])
        self.assertIn("context-switches: 21", notes[0])

    def test_alone_are_not_counted_by_their_number(self):
        lines, notes = run(Collapse, [], self.samples)
        self.assertEqual(lines, [])
        self.assertIn("--off-cpu", notes[0])

    def test_are_counted_by_their_time(self):
        for arguments in (["--off-cpu"], ["--event", "context-switches"], ["--event", SWITCH, "--period"]):
            lines, _ = run(Collapse, arguments, [sample([py("busy")])] + self.samples)
            self.assertEqual(
                lines, ["python3;py::long:/app/main.py 3820000000", "python3;py::often:/app/main.py 20000000"]
            )

    def test_without_times_are_reported(self):
        _, notes = run(Collapse, ["--off-cpu"], [sample([py("f")], event="context-switches", period=1)])
        self.assertIn("no times", notes[0])


class Selecting(unittest.TestCase):
    def test_wrong_options(self):
        for arguments in (["--event"], ["--peri"], ["--limit", "3"]):
            with self.assertRaises(SystemExit) as stop, contextlib.redirect_stderr(io.StringIO()):
                run(Collapse, arguments, [])
            self.assertEqual(stop.exception.code, 2)

    def test_the_first_event_counts_and_the_others_are_told(self):
        lines, notes = run(Collapse, [], [sample([LOOP]), sample([LOOP], event="faults"), sample([LOOP])])
        self.assertEqual(lines, ["python3;_PyEval_EvalFrameDefault 2"])
        self.assertIn("event cycles only; samples of other events: faults: 1", notes[0])

    def test_event_by_name_with_or_without_modifiers(self):
        events = [sample([LOOP], event="cycles:P"), sample([LOOP], event="sched:sched_switch")]
        for name in ("sched:sched_switch", "cycles", "cycles:u"):
            self.assertEqual(run(Collapse, ["--event", name], events)[0], ["python3;_PyEval_EvalFrameDefault 1"])

    def test_both_kinds_of_cores_are_one_event(self):
        events = [sample([LOOP], event="cpu_core/cycles/P"), sample([LOOP], event="cpu_atom/cycles/P")]
        self.assertEqual(run(Collapse, [], events)[0], ["python3;_PyEval_EvalFrameDefault 2"])

    def test_comm(self):
        samples = [sample([LOOP]), sample([LOOP], comm="worker")]
        self.assertEqual(run(Collapse, ["--comm", "worker"], samples)[0], ["worker;_PyEval_EvalFrameDefault 1"])

    def test_notes(self):
        self.assertEqual(run(Collapse, [], [])[1], ["no samples"])
        self.assertEqual(
            run(Collapse, [], [sample([entry(None, MAP)])])[1],
            [
                "no sample has a Python function in its call chain",
                "1 samples have functions that the perf map file has no name for",
            ],
        )
        self.assertEqual(run(Collapse, [], [sample([py("f"), entry("x", LIB)])])[1], [])


if __name__ == "__main__":
    unittest.main()
